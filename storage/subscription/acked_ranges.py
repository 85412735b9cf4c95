"""The acknowledged messages ahead of markDeletePosition, as stored: ranges of entries, and spans (ACKS). For reading.

A range has whole entries of a ledger, joined with their neighbours; an entry of too many messages for a span, of which
some are acknowledged, has a range of its own with the messages.
"""

from __future__ import annotations

from itertools import islice

from storage.disk.codec import U64, key1, key3
from storage.disk.schema import ACKS
from storage.disk.view import ReadView
from storage.subscription import ack_spans, message_set, span
from storage.topic import log, state as states
from storage.values.position import Position


def range_at(view: ReadView, subscription_id: int, at: Position) -> tuple[int, int, bytes] | None:
    """The range, or the run in a span, that contains a position: first and last entry, and the messages."""
    ack_range = stored_range_at(view, subscription_id, at)
    run = ack_spans.run_at(view, subscription_id, at) if ack_range is None else None
    return ack_range if run is None else (*run, message_set.ALL)


def stored_range_at(view: ReadView, subscription_id: int, at: Position) -> tuple[int, int, bytes] | None:
    """The stored range that contains a position: first and last entry, and the messages."""
    prefix = key1(subscription_id) + U64.pack(at[0])
    record = view.last(ACKS, prefix, prefix + U64.pack(at[1]))
    if record is None:
        return None
    last = U64.unpack_from(record[1])[0]
    if last < at[1]:
        return None
    return int.from_bytes(record[0][16:], "big"), last, bytes(record[1][8:])


def has_any(view: ReadView, subscription_id: int, first: Position, last: int) -> bool:
    """Whether a stored range has any of the entries of a ledger from a first one to the one with an id."""
    prefix = key1(subscription_id) + U64.pack(first[0])
    record = view.last(ACKS, prefix, prefix + U64.pack(last))
    return record is not None and U64.unpack_from(record[1])[0] >= first[1]


def acknowledged_through(view: ReadView, subscription_id: int, at: Position) -> Position:
    """The end of the range of whole acknowledged entries around a position; the position if there is no such range."""
    ack_range = range_at(view, subscription_id, at) if at[1] >= 0 else None
    return at if ack_range is None or ack_range[2] else Position(at[0], ack_range[1])


def ranges(view: ReadView, subscription_id: int) -> list[tuple[Position, int, bytes]]:
    """The acknowledged entries ahead of markDeletePosition in order: first entry, last entry id, messages."""
    joined: list[tuple[Position, int, bytes]] = []
    for first, last, messages in pieces(view, subscription_id):
        before = joined[-1] if joined and not messages else None
        if before is not None and not before[2] and (before[0][0], before[1] + 1) == first:
            joined[-1] = before[0], last, messages
        else:
            joined.append((first, last, messages))
    return joined


def pieces(view: ReadView, subscription_id: int) -> list[tuple[Position, int, bytes]]:
    """The same, as the records have them: ranges, and the runs of spans."""
    joined = stored_ranges(view, subscription_id)
    for first, acknowledged in ack_spans.every(view, subscription_id):
        joined += [(begin, last, message_set.ALL) for begin, last in span.runs(first, acknowledged.whole)]
        for at, messages in ack_spans.in_part(first, acknowledged):
            joined.append((at, at[1], span.as_stored(messages)))
    return sorted(joined)


def stored_ranges(
    view: ReadView, subscription_id: int, limit: int | None = None, after: Position | None = None
) -> list[tuple[Position, int, bytes]]:
    """The ranges that are records, or the first ones: first entry, last entry id, messages.

    Args:
        after: leaves out the ranges before the one that this position is in.
    """
    end, start = span.first_key(subscription_id), None
    if after is not None:
        around = stored_range_at(view, subscription_id, after) if after[1] >= 0 else None
        start = key3(subscription_id, after[0], max(after[1], 0) if around is None else around[0])
    return [
        (
            Position(int.from_bytes(key[8:16], "big"), int.from_bytes(key[16:], "big")),
            U64.unpack_from(payload)[0],
            bytes(payload[8:]),
        )
        for key, payload in islice(view.scan(ACKS, key1(subscription_id), start, end), limit)
        if key != end
    ]


def acknowledged_count(
    view: ReadView, topic_id: int, subscription_id: int, records_max: int | None = None
) -> int:
    """Count the messages acknowledged ahead of markDeletePosition, without a scan of the log.

    Messages that only the compacted view has, because their originals were trimmed, do not count.

    Args:
        records_max: ranges, and spans, to count at most; all, if None.
    """
    first_ledger = states.load(view, topic_id).first_ledger
    in_spans = islice(ack_spans.every(view, subscription_id, Position(first_ledger, 0)), records_max)
    total = sum(acknowledged.messages.bit_count() for _, acknowledged in in_spans)
    for first, last, messages in stored_ranges(view, subscription_id, records_max):
        if first.ledger_id < first_ledger:
            continue
        if messages:
            total += int.from_bytes(messages, "big").bit_count()
            continue
        low = log.stored(view, topic_id, first)
        high = log.stored(view, topic_id, Position(first.ledger_id, last))
        total += high.messages_through - low.messages_before
    return total
