"""Recording what dispatch has selected: in flight, acknowledged in passing, held back, awaited."""

from __future__ import annotations

from storage import faults
from storage.disk.view import WriteBatch
from storage.subscription import cursor as cursors, delivery as deliveries
from storage.subscription.catalogue import Subscription
from storage.subscription.cursor import Cursor
from storage.subscription.delivery import NOBODY, Delivery, Part
from storage.subscription.dispatch import skipped_txns as awaits
from storage.subscription.dispatch.selection import WHOLE, Selection
from storage.subscription.dispatch.skipped_txns import Awaited


def apply(
    batch: WriteBatch, subscription: Subscription, cursor: Cursor, consumer_id: int, selection: Selection
) -> None:
    """Record a selection: what was passed is acknowledged, what is handed out is in flight. Saves the cursor."""
    faults.reach("subscription.before_dispatch")
    subscription_id = subscription.subscription_id
    changed: dict[tuple[int, int], Delivery] = {}
    for hand_out in selection.hand_outs:
        delivery = changed[hand_out.delivery.at] = hand_out.delivery
        _hand_out(delivery, hand_out.messages, consumer_id)
        cursor.delivered += hand_out.messages.bit_count()
        cursor.redelivered += len(hand_out.times)
    for delivery, messages in selection.held:
        changed[delivery.at] = delivery
        delivery.give(Part(messages, NOBODY, 0))
    for delivery in changed.values():
        deliveries.save(batch, subscription_id, cursor, delivery)
    if subscription.skips:
        _await(batch, subscription_id, cursor, selection)
    _pass_over(batch, subscription, cursor, selection.passed)
    cursor.read = max(cursor.read, selection.read)
    cursors.advance(batch, subscription.topic_id, subscription_id, cursor)
    cursors.save(batch, subscription_id, cursor)


def _hand_out(delivery: Delivery, messages: int, consumer_id: int) -> None:
    new = messages & ~delivery.known()
    for part in delivery.take(messages):
        delivery.give(Part(part.messages, consumer_id, part.times + 1, recalled=part.recalled))
    if new:
        delivery.give(Part(new, consumer_id, 1))


def _await(batch: WriteBatch, subscription_id: int, cursor: Cursor, selection: Selection) -> None:
    """Note what was passed over for open transactions, and what was looked at of those that have ended."""
    changed: dict[int, Awaited] = {}

    def of(txn: int) -> Awaited:
        if txn not in changed:
            changed[txn] = awaits.find(batch, subscription_id, txn) or Awaited(txn)
        return changed[txn]

    for txn, at, messages in selection.let_go:
        awaits.let_go(batch, subscription_id, cursor, of(txn), at, messages)
    for txn, at, count, messages in selection.behind:
        awaits.hold(batch, subscription_id, cursor, of(txn), at, count, messages)
    for txn in selection.awaits:
        of(txn)
    for txn, through in selection.taken.items():
        of(txn).taken = through
    for txn in selection.ended:
        awaits.remove(batch, subscription_id, cursor, of(txn))
        del changed[txn]
    for each in changed.values():
        awaits.save(batch, subscription_id, cursor, each)
    if selection.awaits:
        cursor.passes += 1


def _pass_over(
    batch: WriteBatch, subscription: Subscription, cursor: Cursor, passed: list[tuple[int, int, int, int]]
) -> None:
    """Acknowledge markers and aborted messages that dispatch has passed, whole runs of them at once."""
    subscription_id, at = subscription.subscription_id, 0
    while at < len(passed):
        ledger_id, first, count, messages = passed[at]
        if messages != WHOLE:
            deliveries.settle(batch, subscription_id, cursor, (ledger_id, first), messages)
            cursors.acknowledge(
                batch, subscription.topic_id, subscription_id, cursor, (ledger_id, first), count, messages
            )
            at += 1
            continue
        last = first
        while at < len(passed) and passed[at][:2] == (ledger_id, last) and passed[at][3] == WHOLE:
            if cursor.released:
                deliveries.settle(batch, subscription_id, cursor, (ledger_id, last), -1)
            at, last = at + 1, last + 1
        if cursors.is_next(batch, subscription.topic_id, cursor.mark_delete, (ledger_id, first)):
            cursors.acknowledge_through(batch, subscription_id, cursor, (ledger_id, last - 1))
        else:
            cursors.acknowledge_entries(batch, subscription_id, ledger_id, first, last - 1)
