"""`txnctl subscriptions seek`, `skip` and `clear-backlog`: moving a cursor by hand."""

from __future__ import annotations

import click

from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, option, output
from txnctl.cli.value_types import POSITION_OR_TIME, SUBSCRIPTION, TOPIC
from txnctl.fields.subscription import NAMES, name_of, short_topic
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from storage.values.position import Start
    from txnctl.cli.context import Context
    from txnctl.cli.value_types import AtTime

    Row = dict[str, Any]

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
)

_MOVE = (
    Field("markDeletePositionBefore", "position", "Everything up to here was acknowledged."),
    Field("markDeletePositionAfter", "position", "Everything up to here is acknowledged now."),
)
_DRY_RUN = Field("dryRun", "boolean", "Whether nothing was changed.")

SOUGHT = (
    *NAMES,
    *_MOVE,
    Field("transactionsAborted", "list", "Open transactions with acknowledgements pending, aborted first."),
    Field("messagesWithdrawn", "integer", "Messages in flight that were taken back from consumers."),
    _DRY_RUN,
)

SKIPPED = (*NAMES, Field("skipped", "integer", "Messages acknowledged unread."), *_MOVE, _DRY_RUN)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument("position", type=POSITION_OR_TIME, help="The next message: earliest, latest, L:E, L:E:B or @TIME.")
@changes_store()
@administrative
@forcible("Abort the open transactions that have acknowledgements pending there.")
@output(SOUGHT, name_field="subscription")
@example("txnctl subscriptions seek orders billing earliest", setup=_SETUP)
@example("txnctl subscriptions seek orders billing @2024-05-01T10:00:00Z --dry-run", setup=_SETUP)
def seek(context: Context, topic: str, subscription: str, position: Start | AtTime) -> None:
    """Move a subscription: the message at POSITION is the next one.

    @TIME is the first message published then or later; a position beyond the end is the end. Backwards, messages are
    handed out again. Forwards, those in between are left unread, and you are asked first. All acknowledgements beyond
    the new position are forgotten, and what is in flight is withdrawn. While an open transaction has acknowledgements
    pending there it is refused.
    """

    from txnctl.commands.subscriptions.start import note_if_beyond, resolved

    start = resolved(context, topic, position)

    def change(*, dry_run: bool) -> Row:
        return context.store.admin.subscriptions.seek_subscription(
            topic, subscription, start, force=context.force, dry_run=dry_run, reason=context.reason
        )

    question = f"Seek {subscription} on {topic} forwards, past what is unread?"
    row = _asked(context, change, question, _is_forwards)
    note_if_beyond(context, topic, start, row["markDeletePositionAfter"])
    context.show(row, table=lambda shown: _sought(context, shown))


def _is_forwards(row: Row) -> bool:
    from storage.values.position import Position

    before, after = row["markDeletePositionBefore"], row["markDeletePositionAfter"]
    return Position.parse(after) > Position.parse(before)


def _sought(context: Context, row: Row) -> Iterator[str]:
    yield from _dry_run(context, row)
    is_moved = row["markDeletePositionBefore"] != row["markDeletePositionAfter"]
    verb = "Would move " if row["dryRun"] else "Moved "
    yield f"{verb if is_moved else ''}{name_of(row)}: {_move(row)}."
    if row["transactionsAborted"]:
        aborted = "would be aborted" if row["dryRun"] else "were aborted"
        yield f"Transactions that held it {aborted}: {', '.join(row['transactionsAborted'])}."
    if row["messagesWithdrawn"]:
        from txnctl.output.human import plural

        withdrawn = "would be withdrawn" if row["dryRun"] else "were withdrawn"
        yield f"In flight {withdrawn}: {plural(row['messagesWithdrawn'], 'message')}."
    if is_moved and not row["dryRun"]:
        ledger, _, entry = str(row["markDeletePositionBefore"]).partition(":")
        back = f"{ledger}:{int(entry) + 1}"
        yield f"Back again: txnctl subscriptions seek {short_topic(row)} {row['subscription']} {back}"


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument("count", type=click.IntRange(1), help="How many messages.")
@option("--beyond-max-read", is_flag=True, help="At READ_UNCOMMITTED, do not stop at maxReadPosition.")
@changes_store(effect="destroys")
@administrative
@output(SKIPPED, name_field="subscription")
@example("txnctl subscriptions skip orders billing 1 --yes --reason 'poison'", setup=_SETUP)
@example("txnctl subscriptions skip orders billing 1 --dry-run", setup=_SETUP)
def skip(context: Context, topic: str, subscription: str, count: int, beyond_max_read: bool) -> None:
    """Acknowledge the next messages of a subscription, unread.

    Only visible messages count; those pending in a transaction are left alone. It stops at maxReadPosition. The
    messages stay in the topic: `subscriptions seek` goes back to them.
    """

    def change(*, dry_run: bool) -> Row:
        return context.store.admin.subscriptions.skip_messages(
            topic,
            subscription,
            count,
            beyond_max_read=beyond_max_read,
            dry_run=dry_run,
            reason=context.reason,
        )

    question = f"Skip {count:,} messages of {subscription} on {topic}?"
    context.show(_asked(context, change, question), table=lambda row: _skipped(context, row))


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@option("--beyond-max-read", is_flag=True, help="At READ_UNCOMMITTED, do not stop at maxReadPosition.")
@changes_store(effect="destroys")
@administrative
@output(SKIPPED, name_field="subscription")
@example("txnctl subscriptions clear-backlog orders billing --yes", setup=_SETUP)
@example("txnctl subscriptions clear-backlog orders billing --dry-run -o json", setup=_SETUP)
def clear_backlog(context: Context, topic: str, subscription: str, beyond_max_read: bool) -> None:
    """Acknowledge all visible messages of a subscription, unread.

    Messages pending in a transaction are left alone, and so is everything behind maxReadPosition. The messages stay
    in the topic: `subscriptions seek` goes back to them.
    """

    def change(*, dry_run: bool) -> Row:
        return context.store.admin.subscriptions.clear_backlog(
            topic, subscription, beyond_max_read=beyond_max_read, dry_run=dry_run, reason=context.reason
        )

    question = f"Clear the backlog of {subscription} on {topic}?"
    context.show(_asked(context, change, question), table=lambda row: _skipped(context, row))


def _skipped(context: Context, row: Row) -> Iterator[str]:
    from txnctl.output.human import plural

    yield from _dry_run(context, row)
    verb = "Would skip" if row["dryRun"] else "Skipped"
    yield f"{verb} {plural(row['skipped'], 'message')} of {name_of(row)}: {_move(row)}."


def _asked(
    context: Context,
    change: Callable[..., Row],
    question: str,
    is_asked: Callable[[Row], bool] = lambda _row: True,
) -> Row:
    """Change, having asked where there is somebody to ask; the question comes with what would change."""
    if not context.yes and not context.dry_run:
        plan = change(dry_run=True)
        if is_asked(plan):
            context.confirm(question, plan=list(_plan(plan)))
    return change(dry_run=context.dry_run)


def _plan(row: Row) -> Iterator[str]:
    from txnctl.output.human import plural

    if "skipped" in row:
        yield f"skips     {plural(row['skipped'], 'message')} of {name_of(row)}"
    yield f"moves     {_move(row)}"
    if row.get("messagesWithdrawn"):
        yield f"withdraws {plural(row['messagesWithdrawn'], 'message')} in flight"
    if row.get("transactionsAborted"):
        yield f"aborts    {', '.join(row['transactionsAborted'])}"


def _move(row: Row) -> str:
    before, after = row["markDeletePositionBefore"], row["markDeletePositionAfter"]
    return f"markDeletePosition {'stays at ' if before == after else f'{before} -> '}{after}"


def _dry_run(context: Context, row: Row) -> Iterator[str]:
    if row["dryRun"]:
        yield context.style("DRY RUN: nothing was changed.", "bold")
        yield ""
