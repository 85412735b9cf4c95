"""The acknowledgements of a subscription: messages acknowledged one by one ahead of markDeletePosition.

Ranges and spans that follow markDeletePosition without a gap are taken into the position.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from storage.disk.codec import U64, key1, key3, key_through
from storage.disk.schema import ACKS, COMPACTIONS
from storage.disk.view import ReadView, WriteBatch
from storage.subscription import (
    ack_spans,
    acked_ranges,
    delivery as deliveries,
    mark_index,
    message_set,
    span,
)
from storage.subscription.ack_spans import AckedMessages
from storage.subscription.cursor import Cursor
from storage.subscription.delayed import Delayed
from storage.topic import state as states, written_positions
from storage.topic.compaction import compacted_view
from storage.values.position import MessageId, Position

V = TypeVar("V", bound=ReadView, covariant=True)


def acknowledged(view: ReadView, subscription_id: int, cursor: Cursor, at: Position, count: int) -> int:
    """The acknowledged messages of the entry at a position; see `Acks.of`."""
    return Acks(view, 0, subscription_id, cursor).of(at, count)


class Acks(Generic[V]):
    """The acknowledged messages of one subscription."""

    __slots__ = ("_cursor", "_subscription_id", "_topic_id", "_view")

    def __init__(self, view: V, topic_id: int, subscription_id: int, cursor: Cursor) -> None:
        self._view = view
        self._topic_id = topic_id
        self._subscription_id = subscription_id
        self._cursor = cursor

    def of(self, at: Position, count: int) -> int:
        """The acknowledged messages of the entry at a position."""
        if at <= self._cursor.mark_delete:
            return message_set.everything(count)
        ack_range = acked_ranges.stored_range_at(self._view, self._subscription_id, at)
        if ack_range is None:
            return ack_spans.of_entry(self._view, self._subscription_id, at) if span.fits(count) else 0
        first, _, messages = ack_range
        return message_set.decode(messages, count) if first == at[1] else message_set.everything(count)

    def has_all(self, at: Position, messages: int) -> bool:
        """Whether all of these messages of the entry at a position are acknowledged."""
        if at <= self._cursor.mark_delete:
            return True
        ack_range = acked_ranges.stored_range_at(self._view, self._subscription_id, at)
        if ack_range is None:
            return not messages & ~ack_spans.of_entry(self._view, self._subscription_id, at)
        return ack_range[0] != at[1] or message_set.has_all(ack_range[2], messages)

    def _delayed(self) -> Delayed[V]:
        return Delayed(self._view, self._subscription_id, self._cursor)

    def is_next(self, at: Position) -> bool:
        """Whether the entry at a position is the first entry after markDeletePosition."""
        view, topic_id, mark = self._view, self._topic_id, self._cursor.mark_delete
        if at[0] == mark[0] and at[1] == mark[1] + 1:
            return True
        if not is_next(view, topic_id, mark, at, self._was_passed):
            return False
        return not view.has_records(COMPACTIONS) or not self._is_delivered_between(mark, at)

    def _was_passed(self, at: Position) -> bool:
        """Whether dispatch has passed a message of the compacted view alone, for a consumer that reads the log."""
        return at <= self._cursor.read and deliveries.find(self._view, self._subscription_id, at) is None

    def _is_delivered_between(self, mark: Position, at: Position) -> bool:
        """Whether a message is delivered that the compacted view had: it may have left the view since."""
        end = min(at, (states.load(self._view, self._topic_id).first_ledger, 0))
        after = Position(mark[0], mark[1] + 1)
        first = next(iter(deliveries.every(self._view, self._subscription_id, after)), None)
        return first is not None and first.at < end

    def acknowledge(self: Acks[WriteBatch], at: Position, count: int, messages: int) -> int:
        """Acknowledge messages of one entry; return the newly acknowledged. `advance` follows after the last entry."""
        before = self.of(at, count)
        new = messages & ~before
        if not new:
            return 0
        if self._cursor.delayed:
            self._delayed().remove(at, new)
        both, key = before | new, key3(self._subscription_id, *at)
        is_whole = both == message_set.everything(count)
        if before and (is_whole or span.fits(count)):
            self._view.delete(
                ACKS, key
            )  # of an earlier release, or of an entry with too many messages for a span
        if is_whole and self.is_next(at):
            if before:
                self._remove_from_span(at, count)
            self._cursor.mark_delete = at
        elif span.fits(count) and not (is_whole and self._touches_range(at)):
            first, whole = span.first_of(at), span.place(at, both)
            self._add_to_span(first, AckedMessages(whole, span.sizes_of(at, count)))
        elif is_whole:
            self.acknowledge_entries(at[0], at[1], at[1])
        else:
            self._view.put(ACKS, key, U64.pack(at[1]) + message_set.encode(both, count))
        return new

    def _remove_from_span(self: Acks[WriteBatch], at: Position, count: int) -> bool:
        """Remove what a span has of an entry; False if it has nothing."""
        if not span.fits(count):
            return False
        first = span.first_of(at)
        known = ack_spans.of_span(self._view, self._subscription_id, first)
        kept = known.without(span.place(at, message_set.everything(count)))
        if kept.messages == known.messages:
            return False
        ack_spans.put(self._view, self._subscription_id, first, kept)
        return True

    def _touches_range(self, at: Position) -> bool:
        prefix = key1(self._subscription_id) + U64.pack(at[0])
        after = self._view.get(ACKS, prefix + U64.pack(at[1] + 1))
        before = self._view.last(ACKS, prefix, prefix + U64.pack(at[1]))
        return (after is not None and len(after) == 8) or (
            before is not None and len(before[1]) == 8 and U64.unpack(before[1])[0] + 1 == at[1]
        )

    def _add_to_span(self: Acks[WriteBatch], first: Position, new: AckedMessages) -> None:
        """Add messages to their span; a span with every entry becomes a range."""
        known = ack_spans.of_span(self._view, self._subscription_id, first)
        both = AckedMessages(known.messages | new.messages, known.sizes | new.sizes)
        if both.whole == span.EVERY:
            self.acknowledge_entries(first[0], first[1], first[1] + span.SPAN_ENTRIES - 1)
        else:
            ack_spans.put(self._view, self._subscription_id, first, both)

    def acknowledge_span(self: Acks[WriteBatch], first: Position, new: AckedMessages) -> None:
        """Acknowledge messages of a span, none of which is acknowledged. `advance` follows."""
        if new.sizes:
            new = self._with_own(first, new)
        whole, inside = new.whole, span.present(new.messages)
        index = (inside & -inside).bit_length() - 1
        if whole & 1 << index and self.is_next(Position(first[0], first[1] + index)):
            last = Position(first[0], first[1] + ack_spans.end_of_run(whole, index))
            self._cursor.mark_delete = last
            new = new.without(span.through(first, last))
        if new.messages:
            self._add_to_span(first, new)

    def _with_own(self: Acks[WriteBatch], first: Position, new: AckedMessages) -> AckedMessages:
        """Take in what entries have in records of their own, which an earlier release wrote."""
        batch, sid = self._view, self._subscription_id
        begin, end = key3(sid, *first), key3(sid, first[0], first[1] + span.SPAN_ENTRIES - 1)
        if batch.first(ACKS, key1(sid), begin, end) is None:
            return new
        messages, inside = new.messages, span.present(new.messages)
        for key, payload in list(batch.scan(ACKS, key1(sid), begin, end)):
            at = Position(first[0], int.from_bytes(key[16:], "big"))
            if len(payload) > 8 and inside & span.bit_of(at):
                messages |= span.place(at, int.from_bytes(payload[8:], "big"))
                batch.delete(ACKS, key)
        return AckedMessages(messages, new.sizes)

    def pass_marker(self: Acks[WriteBatch], at: Position) -> None:
        """Acknowledge a marker. `advance` follows."""
        if self.of(at, 1):
            return
        if self.is_next(at):
            self._cursor.mark_delete = at
        else:
            self.acknowledge_entries(at[0], at[1], at[1])

    def acknowledge_entries(self: Acks[WriteBatch], ledger_id: int, first: int, last: int) -> None:
        """Acknowledge whole entries ahead of markDeletePosition, joined with adjacent ranges."""
        batch, prefix = self._view, key1(self._subscription_id) + U64.pack(ledger_id)
        before = Position(ledger_id, first - 1)
        ack_spans.remove(batch, self._subscription_id, before, Position(ledger_id, last))
        after = batch.get(ACKS, prefix + U64.pack(last + 1))
        if after is not None and len(after) == 8:
            batch.delete(ACKS, prefix + U64.pack(last + 1))
            (last,) = U64.unpack(after)
        while (record := batch.last(ACKS, prefix, prefix + U64.pack(last))) is not None:
            start, (end,) = int.from_bytes(record[0][16:], "big"), U64.unpack_from(record[1])
            if start < first and (len(record[1]) > 8 or end + 1 < first):
                break
            batch.delete(ACKS, record[0])
            first, last = min(first, start), max(last, end)
        batch.put(ACKS, prefix + U64.pack(first), U64.pack(last))

    def acknowledge_through(self: Acks[WriteBatch], through: Position) -> None:
        """Acknowledge everything up to and including an entry."""
        cursor, sid = self._cursor, self._subscription_id
        if through <= cursor.mark_delete:
            return
        self._delayed().remove_through(through)
        cursor.mark_delete = through
        cursor.read = max(cursor.read, through)
        straddling = acked_ranges.stored_range_at(self._view, sid, through) if through[1] >= 0 else None
        ack_spans.remove(self._view, sid, Position(0, -1), through)
        self._view.delete_prefix(ACKS, key1(sid), stop=key_through(sid, through))
        if straddling is not None and straddling[1] > through[1]:
            cursor.mark_delete = Position(through[0], straddling[1])
            cursor.read = max(cursor.read, cursor.mark_delete)

    def unacknowledge(self: Acks[WriteBatch], at: Position, count: int, messages: int) -> int:
        """Take back acknowledgements of messages of one entry; return the messages that were acknowledged.

        markDeletePosition moves back below the entry if need be, and dispatch counts the entry as read.
        """
        batch, before = self._view, self.of(at, count)
        taken, rest = before & messages, before & ~messages
        if not taken:
            return 0
        if at <= self._cursor.mark_delete:
            self._move_back(at)
        prefix = key1(self._subscription_id) + U64.pack(at[0])
        if self._remove_from_span(at, count):
            self._keep(at, count, rest)
            return taken
        around = acked_ranges.stored_range_at(batch, self._subscription_id, at)
        assert around is not None, "acknowledged messages ahead of markDeletePosition are in a range"
        begin, last, _ = around
        batch.delete(ACKS, prefix + U64.pack(begin))
        if begin < at[1]:
            batch.put(ACKS, prefix + U64.pack(begin), U64.pack(at[1] - 1))
        if last > at[1]:
            batch.put(ACKS, prefix + U64.pack(at[1] + 1), U64.pack(last))
        self._keep(at, count, rest)
        return taken

    def _keep(self: Acks[WriteBatch], at: Position, count: int, messages: int) -> None:
        """Note an entry as acknowledged in part, of which nothing is noted."""
        if messages and span.fits(count):
            acknowledged = AckedMessages(span.place(at, messages), span.sizes_of(at, count))
            self._add_to_span(span.first_of(at), acknowledged)
        elif messages:
            key = key3(self._subscription_id, *at)
            self._view.put(ACKS, key, U64.pack(at[1]) + message_set.encode(messages, count))

    def _move_back(self: Acks[WriteBatch], at: Position) -> None:
        """Move markDeletePosition below an entry; the entries up to the former position become ranges, one a ledger."""
        cursor, through = self._cursor, self._cursor.mark_delete
        cursor.read = max(cursor.read, through)
        cursor.mark_delete = Position(at[0], at[1] - 1)
        mark_index.lower(self._view, self._topic_id, self._subscription_id, cursor.mark_delete)
        before: Position | None = through
        while before is not None and before >= at:
            first = at[1] if before[0] == at[0] else 0
            if before[1] >= first:
                self.acknowledge_entries(before[0], first, before[1])
            before = written_positions.preceding(self._view, self._topic_id, Position(before[0], 0))

    def advance(self: Acks[WriteBatch]) -> None:
        """Take into markDeletePosition the acknowledged entries that follow it without a gap."""
        cursor, prefix = self._cursor, key1(self._subscription_id)
        while (first := self._view.first(ACKS, prefix)) is not None:
            if not (self._advance_over_range(*first) or self._advance_over_run()):
                break
        cursor.read = max(cursor.read, cursor.mark_delete)

    def _advance_over_range(self: Acks[WriteBatch], key: bytes, payload: memoryview) -> bool:
        """Advance over the first record, if that is a range."""
        cursor = self._cursor
        at, is_span = span.unpack(key[8:])
        if is_span:
            return False
        # Messages that have left the compacted view may be acknowledged below the mark, which has passed them.
        if at > cursor.mark_delete and (len(payload) > 8 or not self.is_next(at)):
            return False
        last = Position(at[0], U64.unpack_from(payload)[0])
        is_whole = len(payload) == 8
        self._view.delete(ACKS, key)
        if is_whole:
            cursor.mark_delete = max(cursor.mark_delete, last)
        return True

    def _advance_over_run(self: Acks[WriteBatch]) -> bool:
        batch, cursor = self._view, self._cursor
        run = ack_spans.first_run(batch, self._subscription_id)
        if run is None:
            return False
        begin, end = run[0], Position(run[0][0], run[1])
        if begin > cursor.mark_delete and (end < begin or not self.is_next(begin)):
            return False
        before = Position(begin[0], begin[1] - 1)
        ack_spans.remove(batch, self._subscription_id, before, max(begin, end))
        cursor.mark_delete = max(cursor.mark_delete, end)
        return True

    def begin_inside(self: Acks[WriteBatch], start: MessageId) -> None:
        """Begin the subscription at a message inside a batch: acknowledge the messages before it."""
        at = start.position
        entry = compacted_view.read_anywhere(self._view, self._topic_id, at)
        if entry is not None and start.batch_index > 0 and entry.count:
            before = message_set.through(min(start.batch_index, entry.count) - 1)
            self._cursor.has_uncommitted_acks = True
            self.acknowledge(at, entry.count, before)


def is_next(
    view: ReadView,
    topic_id: int,
    mark: Position,
    at: Position,
    was_passed: Callable[[Position], bool] = lambda _: False,
) -> bool:
    """Whether the entry at `at` is the first entry after `mark`.

    Where the log was trimmed, only the entries count that the compacted view has, but those that `was_passed`.
    """
    if at[0] == mark[0] and at[1] == mark[1] + 1:
        return True
    if at > mark and view.has_records(COMPACTIONS) and mark[0] < states.load(view, topic_id).first_ledger:
        return _is_next_compacted(view, topic_id, mark, at, was_passed)
    return at[0] != mark[0] and at[1] == 0 and at == written_positions.following(view, topic_id, mark)


def _is_next_compacted(
    view: ReadView, topic_id: int, mark: Position, at: Position, was_passed: Callable[[Position], bool]
) -> bool:
    first_ledger = states.load(view, topic_id).first_ledger
    between = compacted_view.first_after(view, topic_id, mark)
    while between is not None and between < min(at, (first_ledger, 0)):
        if not was_passed(between):
            return False
        between = compacted_view.first_after(view, topic_id, between)
    return at[0] < first_ledger or at == written_positions.following(view, topic_id, mark)
