"""Record the selection of a walk: messages in flight, acknowledged in passing, held back, skipped."""

from __future__ import annotations

from storage import faults
from storage.disk.view import WriteBatch
from storage.subscription import span
from storage.subscription.delivery import NOBODY, Delivery, DeliveryPart
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.walk_result import WHOLE, Selection
from storage.subscription.open_subscription import OpenSubscription
from storage.values.position import Position


def record_selection(opened: OpenSubscription[WriteBatch], consumer_id: int, selection: Selection) -> None:
    """Record a selection: passed entries become acknowledged, dispatched messages are in flight at the consumer."""
    faults.reach("subscription.before_dispatch")
    cursor, changed = opened.cursor, dict[Position, Delivery]()
    for dispatched in selection.dispatched:
        delivery = changed[dispatched.delivery.at] = dispatched.delivery
        _deliver(delivery, dispatched.messages, consumer_id)
        cursor.delivered += dispatched.messages.bit_count()
        cursor.redelivered += len(dispatched.times)
    if selection.due and opened.subscription.keeps_keys:
        # From now on a due message holds its key, and later messages of the key may be queued at other consumers.
        cursor.generation += 1
    for at, messages in selection.due:
        opened.delayed.remove(at, messages)
    for delivery, early in selection.delayed:
        if delivery.take(sum(early.values())):
            changed[delivery.at] = delivery
        opened.delayed.postpone(delivery.at, delivery.count, early)
    for delivery, messages in selection.held:
        changed[delivery.at] = delivery
        delivery.give(DeliveryPart(messages, NOBODY, 0))
    for delivery in changed.values():
        opened.deliveries.put(delivery)
    if opened.subscription.skips:
        _note_skipped(opened, selection)
    for ledger_id, first, last in selection.gaps:
        if opened.acks.is_next(Position(ledger_id, first)):
            opened.acks.acknowledge_through(Position(ledger_id, last))
        else:
            opened.acks.acknowledge_entries(ledger_id, first, last)
    _acknowledge_passed(opened, selection.passed)
    cursor.read = max(cursor.read, selection.read)
    opened.acks.advance()


def _deliver(delivery: Delivery, messages: int, consumer_id: int) -> None:
    new = messages & ~delivery.known()
    for part in delivery.take(messages):
        delivery.give(DeliveryPart(part.messages, consumer_id, part.times + 1, recalled=part.recalled))
    if new:
        delivery.give(DeliveryPart(new, consumer_id, 1))


def _note_skipped(opened: OpenSubscription[WriteBatch], selection: Selection) -> None:
    """Note the skipped open transactions, and the examined entries of ended ones."""
    unblocked, behind = dict[int, dict[Position, int]](), dict[tuple[int, Position], int]()
    for txn, at, messages in selection.unblocked:
        examined = unblocked.setdefault(txn, {})
        examined[at] = examined.get(at, 0) | messages
    for txn, examined in unblocked.items():
        skipped_txns.unblock(opened, skipped_txns.skip(opened, txn), examined)
    for txn, at, count, messages in selection.behind:
        if span.fits(count):
            first = span.first_of(at)
            behind[txn, first] = behind.get((txn, first), 0) | span.place(at, messages)
        else:
            skipped_txns.block(opened, skipped_txns.skip(opened, txn), at, count, messages)
    for (txn, first), messages in behind.items():
        skipped_txns.block_in_span(opened, skipped_txns.skip(opened, txn), first, messages)
    for txn in selection.skipped:
        skipped_txns.skip(opened, txn)
    for txn, through in selection.examined.items():
        skipped_txns.skip(opened, txn).examined = through
    for txn in selection.ended:
        skipped_txns.remove(opened, skipped_txns.skip(opened, txn))
    if selection.skipped:
        opened.cursor.passes += 1


def _acknowledge_passed(
    opened: OpenSubscription[WriteBatch], passed: list[tuple[int, int, int, int]]
) -> None:
    """Acknowledge markers and aborted messages that dispatch has passed, whole runs at once."""
    number = 0
    while number < len(passed):
        ledger_id, first, count, messages = passed[number]
        at = Position(ledger_id, first)
        if messages != WHOLE:
            opened.deliveries.settle(at, messages)
            opened.acks.acknowledge(at, count, messages)
            number += 1
            continue
        last = first
        while number < len(passed) and passed[number][:2] == (ledger_id, last) and passed[number][3] == WHOLE:
            if opened.cursor.released:
                opened.deliveries.settle(Position(ledger_id, last), -1)
            number, last = number + 1, last + 1
        if opened.acks.is_next(at):
            opened.acks.acknowledge_through(Position(ledger_id, last - 1))
        else:
            opened.acks.acknowledge_entries(ledger_id, first, last - 1)
