"""The records that a walk meets: of each entry the delivery and the acknowledged messages, looked up once a span.

Most entries that a walk reads are new, and no record names them: a look at the set of the others tells.
"""

from __future__ import annotations

from storage.disk.codec import key1, key3
from storage.disk.schema import DELIVERIES
from storage.disk.view import ReadView
from storage.subscription import ack_spans, acked_ranges, delivery as deliveries, pending_ack, span
from storage.subscription.delivery import Delivery
from storage.subscription.open_subscription import OpenSubscription
from storage.topic.entry import Entry
from storage.values.position import Position


class RecordsAhead:
    """The records of a subscription for a walk, which writes nothing. Entries are best asked for in order.

    Of the span that was asked for last are kept: the record of deliveries, the acknowledged messages, whether entries
    have records of their own, and the entries that any record names.
    """

    __slots__ = ("_acked", "_first", "_has_own", "_has_ranges", "_named", "_opened", "_record", "_whole")

    def __init__(self, opened: OpenSubscription[ReadView]) -> None:
        self._opened = opened
        self._first: tuple[int, int] = (-1, 0)

    def _enter(self, at: Position) -> None:
        """Look up the records of the span of an entry."""
        opened, first = self._opened, span.first_of(at)
        view, subscription_id = opened.view, opened.subscription_id
        last = first[1] + span.SPAN_ENTRIES - 1
        self._first = first
        self._record = deliveries.find_span(view, subscription_id, first)
        acknowledged = ack_spans.of_span(view, subscription_id, first)
        self._acked, self._whole = acknowledged.messages, acknowledged.whole
        begin, end = key3(subscription_id, *first), key3(subscription_id, first[0], last)
        self._has_own = view.first(DELIVERIES, key1(subscription_id), begin, end) is not None
        self._has_ranges = acked_ranges.has_any(view, subscription_id, first, last)
        if self._has_own or self._has_ranges:
            self._named = span.EVERY
            return
        named = span.present(self._acked) | span.through(first, opened.cursor.mark_delete)
        if self._record is not None:
            named |= span.present(self._record.known())
        if opened.cursor.pending_cumulative is not None:
            named |= span.through(first, Position(*opened.cursor.pending_cumulative[1:3]))
        self._named = named & span.EVERY

    def names(self, entry: Entry) -> bool:
        """Whether any record may name an entry; of an entry that none names, every message is new."""
        ledger_id, first = self._first
        index = entry.entry_id - first
        if ledger_id != entry.ledger_id or not 0 <= index < span.SPAN_ENTRIES:
            self._enter(entry.position)
            index = entry.entry_id % span.SPAN_ENTRIES
        return bool(self._named and self._named >> index & 1)

    def delivery(self, entry: Entry) -> Delivery:
        """The delivery of an entry, without parts where none is recorded."""
        at, known = entry.position, None
        if self.names(entry):
            if self._has_own:
                known = deliveries.find_own(self._opened.view, self._opened.subscription_id, at)
            if known is None and self._record is not None and span.fits(entry.count):
                known = self._record.of_entry(at)
        return known or Delivery(at, entry.count, [])

    def end_of_acknowledged(self, entry: Entry) -> Position | None:
        """The end of the acknowledged entries from an entry on, or None."""
        if not self.names(entry):
            return None
        at = entry.position
        if self._has_ranges:
            around = acked_ranges.stored_range_at(self._opened.view, self._opened.subscription_id, at)
            if around is not None:
                return None if around[2] else Position(at[0], around[1])
        if not self._whole & span.bit_of(at):
            return None
        return Position(at[0], self._first[1] + ack_spans.end_of_run(self._whole, at[1] - self._first[1]))

    def acknowledged(self, entry: Entry) -> int:
        """Messages of an entry that are acknowledged, or covered by a pending cumulative acknowledgement."""
        if not self.names(entry):
            return 0
        at, count, cursor = entry.position, entry.count, self._opened.cursor
        if self._has_ranges or at <= cursor.mark_delete:
            done = self._opened.acks.of(at, count)
        else:
            done = span.of_entry(at, self._acked) if span.fits(count) else 0
        return done | pending_ack.covered(cursor, at, count)
