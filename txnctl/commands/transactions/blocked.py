"""`txnctl transactions blocked`: the transactions that hold messages back, in order."""

from __future__ import annotations

from txnctl.cli import exit_codes
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.holder import COLUMNS, HOLDER, held_up
from txnctl.output.field import fields_of
from txnctl.output.human import plural
from txnctl.output.screen import heading, next_command, section
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.timeline import Blocking, BlockingRow
    from txnctl.cli.context import Context

BLOCKED = fields_of(
    "storage.reports.timeline:BlockingRow",
    {
        **HOLDER,
        "blocked_messages": "Committed messages that wait on the topic behind all of them.",
        "oldest_blocked_at_ms": "When the first of these was published; null if there is none near.",
        "as_of_at_ms": "The moment of which the report speaks.",
    },
)

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing",
    "txnctl transactions begin",
    "txnctl produce orders -m half --txn 0:1",
    "txnctl produce orders -m whole",
)


@argument("topic", type=TOPIC, required=False, help="The topic. [default: all]")
@option("--chain", is_flag=True, help="Show those that come next as well, in order.")
@option("--exit-code", is_flag=True, help="End with 8 if anything is blocked.")
@reads_store
@output(BLOCKED, name_field="txnId")
@example("txnctl transactions blocked", setup=_SETUP)
@example("txnctl transactions blocked orders --chain", setup=_SETUP)
@example("txnctl transactions blocked orders --exit-code -o json", setup=_SETUP, exit_code=8)
def blocked(context: Context, topic: str | None, chain: bool, exit_code: bool) -> None:
    """Show behind which open transactions committed messages wait.

    READ_COMMITTED reads up to the first message of the open transaction that comes first on the topic. FREES counts
    the committed messages readable after the end of that transaction; with --chain, for each further transaction,
    after the end of all transactions up to there. Ending a transaction that is not first frees nothing yet. OWN counts
    the messages of the transaction, visible after a commit, dropped by an abort. Counting reads no blocked message.
    """
    links = context.store.reports.list_blocking_transactions(topic)
    rows = [
        row
        for row in links
        if (row.blocked_messages and (chain or row.blocking.place == 1)) or (chain and topic is not None)
    ]
    if context.output == "table" and not any(row.blocked_messages for row in rows):
        context.note(_nothing(links, topic))
    context.show_list(rows, table=lambda shown: _report(context, shown, topic))
    if context.output == "table" and not rows:
        for text in _quiet(context, topic):
            context.note(text)
    if exit_code and any(row.blocked_messages for row in rows):
        context.exit(exit_codes.CONDITION_FOUND)


def _nothing(links: Sequence[BlockingRow], topic: str | None) -> str:
    where = f" on {topic}" if topic is not None else ""
    if not links:
        return f"nothing is blocked{where}: no open transaction has messages there"
    several = len({row.blocking.holder.txn_id for row in links})
    holds = "holds" if several == 1 else "hold"
    return f"nothing is blocked{where}: {plural(several, 'open transaction')} {holds} nothing back"


def _quiet(context: Context, topic: str | None) -> Iterator[str]:
    """The consumers that hold messages up, where no transaction does; `doctor` says more."""
    from storage.reports.quiet_findings import sentence

    for quiet in context.store.reports.list_quiet_consumers(topic):
        yield f"{sentence(quiet)}; see `{line('doctor')}`"


def _report(context: Context, rows: Sequence[BlockingRow], topic: str | None) -> Iterator[str]:
    """Topic by topic; then the next command."""
    topics = list(dict.fromkeys([row.blocking.topic for row in rows]))
    for index, name in enumerate(topics):
        if index:
            yield ""
        yield from _topic(context, [row for row in rows if row.blocking.topic == name])
    worst = max(rows, key=lambda row: (row.blocking.place == 1, row.blocked_messages), default=None)
    quiet = list(_quiet(context, topic)) if rows else []
    if quiet:
        yield ""
        yield from [f"Besides: {text}." for text in quiet]
    if worst is not None:
        yield ""
        yield next_command(context, line("transactions explain", worst.blocking.holder.txn_id))


def _topic(context: Context, rows: Sequence[BlockingRow]) -> Iterator[str]:
    from txnctl.commands.transactions.layout import alarmed

    first, chain = rows[0], [row.blocking for row in rows]
    blocked = held_up(first.blocked_messages, first.oldest_blocked_at_ms, first.as_of_at_ms)
    yield heading(context, first.blocking.name, blocked, first.as_of_at_ms)
    yield ""
    yield from section(context, alarmed(context, context.table_of(chain, COLUMNS, indent=2)))
    waits = list(_waiting(chain))
    if waits:
        yield ""
        yield from waits


def _waiting(chain: Sequence[Blocking]) -> Iterator[str]:
    """`billing waits: 797 behind 0:1187, 403 behind 0:1190`, as far as the rows go."""
    for name in chain[0].unblocks:
        counts = [(link.unblocks[name], link.holder.txn_id) for link in chain if link.unblocks[name]]
        if counts:
            behind = ", ".join([f"{count:,} behind {txn}" for count, txn in counts])
            yield f"  {name} waits: {behind}"
