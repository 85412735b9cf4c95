"""Acknowledge runs of entries of a committed transaction at once, except pending messages.

The work is that of the records within the runs: spans, ranges, and deliveries of entries with too many messages for a
span. The runs were gathered to sets within their spans first (`lost_runs.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from storage.disk.codec import U64, key1, key3
from storage.disk.schema import ACKS
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import ack_spans, delivery as deliveries, message_set, span
from storage.subscription.ack_spans import AckedMessages
from storage.subscription.delivery import Delivery
from storage.subscription.lost_runs import GatheredRuns
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.pending_ack import covered, messages_through
from storage.topic import log
from storage.values.position import MessageId, Position


def acknowledge(opened: OpenSubscription[WriteBatch], gathered: Iterable[GatheredRuns]) -> int:
    """Acknowledge runs, which are in order, and return the messages that were neither acknowledged nor pending.

    `Acks.advance` follows.
    """
    total = 0
    for runs in gathered:
        inside = runs.in_span()
        total += _acknowledge_set(opened, runs.first, inside) if inside.messages else 0
        total += sum(_acknowledge_entry(opened, at) for at in runs.beyond_span())
        total += sum(_acknowledge_run(opened, run.first, run.last) for run in runs.long)
    return total


def _acknowledge_set(opened: OpenSubscription[WriteBatch], first: Position, lost: AckedMessages) -> int:
    """Acknowledge entries of a span."""
    end = Position(first.ledger_id, first.entry_id + span.SPAN_ENTRIES - 1)
    own = [delivery for delivery in _own(opened, first, end) if span.fits(delivery.count)]
    record = opened.deliveries.find_span(first)
    held = record.of(deliveries.PENDING) if record is not None else 0
    for delivery in own:
        held |= span.place(delivery.at, delivery.of(deliveries.PENDING))
    cumulative = opened.cursor.pending_cumulative
    if cumulative is not None:
        last = MessageId(*cumulative[1:4])
        held |= span.through(first, last.position, messages_through(last))
    free = lost.messages & ~held & ~_acknowledged_in(opened, first)
    if not free:
        return 0
    for delivery in own:
        inside = span.of_entry(delivery.at, free)
        if inside:
            opened.deliveries.settle(delivery.at, inside)
    opened.deliveries.settle_in_span(first, free)
    for at in span.entries(first, free) if opened.cursor.delayed else ():
        opened.delayed.remove(at, span.of_entry(at, free))
    opened.acks.acknowledge_span(first, AckedMessages(free, lost.sizes))
    return free.bit_count()


def _acknowledged_in(opened: OpenSubscription[WriteBatch], first: Position) -> int:
    """The acknowledged messages of a span, in ranges and records of entries too."""
    view, subscription_id = opened.view, opened.subscription_id
    acknowledged = ack_spans.of_span(view, subscription_id, first).messages
    acknowledged |= span.through(first, opened.cursor.mark_delete)
    end = Position(first.ledger_id, first.entry_id + span.SPAN_ENTRIES - 1)
    for begin, last, messages in _ranges_between(view, subscription_id, first, end):
        if messages:
            acknowledged |= span.place(begin, int.from_bytes(messages, "big") & span.MESSAGES)
        else:
            before = Position(begin.ledger_id, begin.entry_id - 1)
            through = span.through(first, Position(begin.ledger_id, last))
            acknowledged |= through & ~span.through(first, before)
    return acknowledged


def _acknowledge_run(opened: OpenSubscription[WriteBatch], first: Position, last: int) -> int:
    """Acknowledge a run of entries of a ledger: whole but for entries with pending messages."""
    ledger_id, end, total = first.ledger_id, Position(first.ledger_id, last), 0
    first = max(first, Position(opened.cursor.mark_delete[0], opened.cursor.mark_delete[1] + 1))
    cumulative = opened.cursor.pending_cumulative
    if cumulative is not None and first <= cumulative[1:3]:
        if cumulative[3] >= 0 and cumulative[1:3] <= end:
            total += _acknowledge_entry(opened, Position(*cumulative[1:3]))
        first = Position(cumulative[1], cumulative[2] + 1)
    if first > end:
        return total
    for at in _with_pending(opened, first, end):
        total += _acknowledge_whole(opened, first, at.entry_id - 1) + _acknowledge_entry(opened, at)
        first = Position(ledger_id, at.entry_id + 1)
    return total + _acknowledge_whole(opened, first, last)


def _with_pending(opened: OpenSubscription[WriteBatch], first: Position, end: Position) -> list[Position]:
    """The entries with messages that are pending one by one."""
    entries = [delivery.at for delivery in _own(opened, first, end) if delivery.of(deliveries.PENDING)]
    before = Position(first.ledger_id, first.entry_id - 1)
    for record in deliveries.spans(opened.view, opened.subscription_id, first):
        if record.at > end:
            break
        inside = span.through(record.at, end) & ~span.through(record.at, before)
        entries += span.entries(record.at, record.of(deliveries.PENDING) & inside)
    return sorted(entries)


def _own(opened: OpenSubscription[WriteBatch], first: Position, end: Position) -> list[Delivery]:
    """The deliveries with a record of their own between two entries, both included."""
    records = []
    for delivery in deliveries.own(opened.view, opened.subscription_id, first):
        if delivery.at > end:
            break
        records.append(delivery)
    return records


def _acknowledge_entry(opened: OpenSubscription[WriteBatch], at: Position) -> int:
    """Acknowledge the messages of an entry that are not pending."""
    count, delivery = log.stored(opened.view, opened.topic_id, at).count, opened.deliveries.find(at)
    pending = covered(opened.cursor, at, count)
    pending |= delivery.of(deliveries.PENDING) if delivery is not None else 0
    free = message_set.everything(count) & ~opened.acks.of(at, count) & ~pending
    if free:
        opened.acks.acknowledge(at, count, free)
        opened.deliveries.settle(at, free)
    return free.bit_count()


def _acknowledge_whole(opened: OpenSubscription[WriteBatch], first: Position, last: int) -> int:
    """Acknowledge a run of entries without pending messages."""
    view, end = opened.view, Position(first.ledger_id, last)
    if first > end:
        return 0
    before = Position(first.ledger_id, first.entry_id - 1)
    stored = log.stored(view, opened.topic_id, end).messages_through
    total = stored - log.stored(view, opened.topic_id, first).messages_before
    for span_first, acknowledged in list(ack_spans.every(view, opened.subscription_id, first, end)):
        inside = span.through(span_first, end) & ~span.through(span_first, before)
        total -= (acknowledged.messages & inside).bit_count()
    for begin, range_last, stored_set in _ranges_between(view, opened.subscription_id, first, end):
        if stored_set:
            total -= int.from_bytes(stored_set, "big").bit_count()
            continue
        low = log.stored(view, opened.topic_id, max(begin, first))
        high = log.stored(view, opened.topic_id, min(Position(begin.ledger_id, range_last), end))
        total -= high.messages_through - low.messages_before
    opened.deliveries.settle_between(first, end)
    opened.delayed.remove_between(first, end)
    opened.acks.acknowledge_entries(first.ledger_id, first.entry_id, last)
    return total


def _ranges_between(
    view: ReadView, subscription_id: int, first: Position, end: Position
) -> list[tuple[Position, int, bytes]]:
    """The acknowledged ranges with entries between two of a ledger: first entry, last entry id, messages."""
    prefix, start = key1(subscription_id), key3(subscription_id, *first)
    around = view.last(ACKS, prefix + U64.pack(first[0]), start)
    if around is not None and U64.unpack_from(around[1])[0] >= first[1]:
        start = around[0]
    return [
        (Position(first[0], int.from_bytes(key[16:], "big")), U64.unpack_from(payload)[0], bytes(payload[8:]))
        for key, payload in view.scan(ACKS, prefix, start, key3(subscription_id, *end))
    ]
