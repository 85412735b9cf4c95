"""`txnctl subscriptions seek`: move a cursor to a position or a time."""

from __future__ import annotations

from txnctl.cli.at_time import position_of
from txnctl.cli.decorators import (
    administrative,
    argument,
    asks,
    changes_store,
    example,
    forcible,
    option,
    output,
)
from txnctl.cli.value_types import POSITION_OR_TIME, SUBSCRIPTION, TOPIC
from txnctl.commands.subscriptions.cursor_move import MOVE, asked, move
from txnctl.commands.subscriptions.forced_ends import TRANSACTIONS_ABORTED
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of, short_topic
from txnctl.output.field import fields_of
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.subscriptions import SubscriptionSought
    from storage.values.position import Position, Start
    from txnctl.cli.at_time import AtTime
    from txnctl.cli.context import Context
    from txnctl.commands.subscriptions.cursor_move import Sought

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
)

SOUGHT = fields_of(
    "storage.admin.subscriptions:Changed[OfSubscription[SubscriptionSought]]",
    {
        **NAMES,
        **MOVE,
        **TRANSACTIONS_ABORTED,
        "messages_withdrawn": "Messages in flight that were taken back from consumers.",
        **DRY_RUN,
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument("position", type=POSITION_OR_TIME, help="The next message: earliest, latest, L:E, L:E:B or @TIME.")
@option(
    "--read-compacted", is_flag=True, help="Reach messages that only the compacted view has, before the log."
)
@changes_store()
@administrative
@asks
@forcible("Abort the open transactions that have acknowledgements pending there.")
@output(SOUGHT, name_field="subscription")
@example("txnctl subscriptions seek orders billing earliest", setup=_SETUP)
@example("txnctl subscriptions seek orders billing @2024-05-01T10:00:00Z --dry-run", setup=_SETUP)
def seek(
    context: Context, topic: str, subscription: str, position: Start | AtTime, read_compacted: bool
) -> None:
    """Move a subscription: the message at POSITION is the next one.

    @TIME is the first message published then or later; a position beyond the end is the end. Backwards, messages are
    delivered again. Forwards, the messages in between are left unread, after a confirmation. Acknowledgements beyond
    the new position are dropped, and messages in flight recalled. The command refuses while an open transaction has
    acknowledgements pending on the subscription. With --read-compacted the position may lie before the log, where the
    compacted view of the topic has messages; only `consume --read-compacted` delivers these.
    """

    from txnctl.commands.subscriptions.start_note import note_if_beyond

    start = position_of(context.store, topic, position)

    def change(*, dry_run: bool) -> Sought:
        return context.store.admin.subscriptions.seek_subscription(
            topic,
            subscription,
            start,
            read_compacted=read_compacted,
            force=context.force,
            dry_run=dry_run,
            reason=context.reason,
        )

    question = f"Seek {subscription} on {topic} forwards, past what is unread?"
    row = asked(context, change, question, _is_forwards)
    note_if_beyond(context, topic, start, row.effects.change.mark_delete_position_after)
    extent = context.store.reports.topic_extents([topic])[0]
    begin = None if read_compacted else extent.before
    back = str(extent.begin_behind(row.effects.change.mark_delete_position_before))
    context.show(row, table=lambda shown: _sought(context, shown, begin, back))


def _is_forwards(row: SubscriptionSought) -> bool:
    return row.mark_delete_position_after > row.mark_delete_position_before


def _sought(context: Context, row: Sought, begin: Position | None, back: str) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    names, change = row.effects, row.effects.change
    before = change.mark_delete_position_before
    is_moved = before != change.mark_delete_position_after
    verb = "Would move " if row.dry_run else "Moved "
    yield f"{verb if is_moved else ''}{name_of(names)}: {move(change)}."
    if change.transactions_aborted:
        aborted = "would be aborted" if row.dry_run else "were aborted"
        held = ", ".join([str(txn) for txn in change.transactions_aborted])
        yield f"Transactions that held it {aborted}: {held}."
    if change.messages_withdrawn:
        withdrawn = "would be withdrawn" if row.dry_run else "were withdrawn"
        yield f"In flight {withdrawn}: {plural(change.messages_withdrawn, 'message')}."
    if is_moved and begin is not None and before < begin:
        yield f"The log begins at {begin.ledger_id}:0: no seek leads back to {before}."
    elif is_moved and not row.dry_run:
        seek_back = line(
            "subscriptions seek", short_topic(names), names.subscription, back, read_compacted=begin is None
        )
        yield f"Back again: {seek_back}"
