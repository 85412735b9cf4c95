"""`txnctl transactions blocked`: the transactions that hold messages back, in order."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli import exit_codes
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.holder import COLUMNS, HOLDER, cells, held_up
from txnctl.output.field import Field
from txnctl.output.human import plural
from txnctl.output.screen import heading, next_command, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

BLOCKED = (
    *HOLDER,
    Field("blockedMessages", "integer", "Committed messages that wait on the topic behind all of them."),
    Field("oldestBlockedAt", "time", "When the first of these was published; null if there is none near."),
    Field("oldestBlockedMs", "timeMs", "The same as an integer."),
    Field("asOfAt", "time", "The moment of which the report speaks."),
    Field("asOfMs", "timeMs", "The same as an integer."),
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
    links = to_json(context.store.reports.list_blocking_transactions(topic))
    rows = [
        row
        for row in links
        if (row["blockedMessages"] and (chain or row["place"] == 1)) or (chain and topic is not None)
    ]
    if context.output == "table" and not any(row["blockedMessages"] for row in rows):
        context.note(_nothing(links, topic))
    context.show_list(rows, table=lambda shown: _report(context, shown))
    if exit_code and any(row["blockedMessages"] for row in rows):
        context.exit(exit_codes.CONDITION_FOUND)


def _nothing(links: Sequence[Row], topic: str | None) -> str:
    where = f" on {topic}" if topic is not None else ""
    if not links:
        return f"nothing is blocked{where}: no open transaction has messages there"
    several = len({row["txnId"] for row in links})
    holds = "holds" if several == 1 else "hold"
    return f"nothing is blocked{where}: {plural(several, 'open transaction')} {holds} nothing back"


def _report(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    """Topic by topic; then the next command."""
    topics = list(dict.fromkeys([row["topic"] for row in rows]))
    for index, topic in enumerate(topics):
        if index:
            yield ""
        yield from _topic(context, [row for row in rows if row["topic"] == topic])
    worst = max(rows, key=lambda row: (row["place"] == 1, row["blockedMessages"]), default=None)
    if worst is not None:
        yield ""
        yield next_command(context, "txnctl transactions explain " + worst["txnId"])


def _topic(context: Context, rows: Sequence[Row]) -> Iterator[str]:
    from txnctl.commands.transactions.layout import alarmed

    first = rows[0]
    yield heading(context, first["name"], held_up(first), first["asOfMs"])
    table = context.table_of([cells(row) for row in rows], COLUMNS, indent=2)
    table = alarmed(context, table)
    yield ""
    yield from section(context, table)
    waits = list(_waiting(rows))
    if waits:
        yield ""
        yield from waits


def _waiting(rows: Sequence[Row]) -> Iterator[str]:
    """`billing waits: 797 behind 0:1187, 403 behind 0:1190`, as far as the rows go."""
    for name in rows[0]["unblocks"]:
        counts = [(row["unblocks"][name], row["txnId"]) for row in rows if row["unblocks"][name]]
        if counts:
            behind = ", ".join([f"{count:,} behind {txn}" for count, txn in counts])
            yield f"  {name} waits: {behind}"
