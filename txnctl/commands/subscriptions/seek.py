"""`txnctl subscriptions seek`: move a cursor to a position or a time."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.at_time import position_of
from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, output
from txnctl.cli.value_types import POSITION_OR_TIME, SUBSCRIPTION, TOPIC
from txnctl.commands.subscriptions.cursor_move import MOVE, asked, move
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of, short_topic
from txnctl.output.field import Field
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.values.position import Start
    from txnctl.cli.at_time import AtTime
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
)

SOUGHT = (
    *NAMES,
    *MOVE,
    Field("transactionsAborted", "list", "Open transactions with acknowledgements pending, aborted first."),
    Field("messagesWithdrawn", "integer", "Messages in flight that were taken back from consumers."),
    DRY_RUN,
)


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
    delivered again. Forwards, the messages in between are left unread, after a confirmation. Acknowledgements beyond
    the new position are dropped, and messages in flight recalled. The command refuses while an open transaction has
    acknowledgements pending on the subscription.
    """

    from txnctl.commands.subscriptions.start import note_if_beyond

    start = position_of(context.store, topic, position)

    def change(*, dry_run: bool) -> Row:
        return to_json(
            context.store.admin.subscriptions.seek_subscription(
                topic, subscription, start, force=context.force, dry_run=dry_run, reason=context.reason
            )
        )

    question = f"Seek {subscription} on {topic} forwards, past what is unread?"
    row = asked(context, change, question, _is_forwards)
    note_if_beyond(context, topic, start, row["markDeletePositionAfter"])
    context.show(row, table=lambda shown: _sought(context, shown))


def _is_forwards(row: Row) -> bool:
    from storage.values.position import Position

    before, after = row["markDeletePositionBefore"], row["markDeletePositionAfter"]
    return Position.parse(after) > Position.parse(before)


def _sought(context: Context, row: Row) -> Iterator[str]:
    yield from dry_run_heading(context, row["dryRun"])
    is_moved = row["markDeletePositionBefore"] != row["markDeletePositionAfter"]
    verb = "Would move " if row["dryRun"] else "Moved "
    yield f"{verb if is_moved else ''}{name_of(row)}: {move(row)}."
    if row["transactionsAborted"]:
        aborted = "would be aborted" if row["dryRun"] else "were aborted"
        yield f"Transactions that held it {aborted}: {', '.join(row['transactionsAborted'])}."
    if row["messagesWithdrawn"]:
        withdrawn = "would be withdrawn" if row["dryRun"] else "were withdrawn"
        yield f"In flight {withdrawn}: {plural(row['messagesWithdrawn'], 'message')}."
    if is_moved and not row["dryRun"]:
        ledger, _, entry = str(row["markDeletePositionBefore"]).partition(":")
        back = f"{ledger}:{int(entry) + 1}"
        yield f"Back again: txnctl subscriptions seek {short_topic(row)} {row['subscription']} {back}"
