"""Record the selection of a walk: messages in flight, acknowledged in passing, held back, skipped."""

from __future__ import annotations

from storage import faults
from storage.disk.view import WriteBatch
from storage.subscription import span
from storage.subscription.deliveries import Change, EntryMessages
from storage.subscription.delivery import Delivery
from storage.subscription.dispatch import skipped_txns
from storage.subscription.dispatch.walk_result import WHOLE, Selection
from storage.subscription.open_subscription import OpenSubscription
from storage.values.counters import DELIVERIES, REDELIVERIES
from storage.values.position import Position


def record_selection(opened: OpenSubscription[WriteBatch], consumer_id: int, selection: Selection) -> None:
    """Record a selection: passed entries become acknowledged, dispatched messages are in flight at the consumer."""
    faults.reach("subscription.before_dispatch")
    cursor, pieces = opened.cursor, selection.dispatched
    delivered_count = sum([piece.count for piece in pieces])
    again_count = sum([len(piece.times) for piece in pieces if piece.times])
    cursor.delivered += delivered_count
    cursor.redelivered += again_count
    counted = opened.view.counted
    counted[DELIVERIES] += delivered_count
    counted[REDELIVERIES] += again_count
    delivered = [(piece.entry.position, piece.messages, piece.entry.count) for piece in pieces]
    _change(opened, selection, delivered, lambda known, messages: known.deliver(messages, consumer_id))
    if (selection.due or selection.is_late) and opened.subscription.keeps_keys:
        # From now on such a message holds its key, and later messages of the key may be queued at other consumers.
        cursor.generation += 1
    for at, messages in selection.due:
        opened.delayed.remove(at, messages)
    for delivery, early in selection.delayed:
        if delivery.has_record:
            delivery.take(sum(early.values()))
        elif delivery.parts:
            opened.deliveries.settle(delivery.at, sum(early.values()))
        opened.delayed.postpone(delivery.at, delivery.count, early)
    held = [(delivery.at, messages, delivery.count) for delivery, messages in selection.held]
    _change(opened, selection, held, Delivery.hold)
    for delivery in selection.own.values():
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


def _change(
    opened: OpenSubscription[WriteBatch], selection: Selection, chosen: list[EntryMessages], change: Change
) -> None:
    """Change messages in the records of entries, or all at once in the records of spans."""
    own = selection.own
    if own:
        for at, messages, _ in chosen:
            if at in own:
                change(own[at], messages)
        chosen = [messages for messages in chosen if messages[0] not in own]
    opened.deliveries.change_in_spans(chosen, change)


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
