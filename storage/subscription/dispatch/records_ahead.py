"""The records that a walk meets: of each entry the delivery and the acknowledged messages, looked up once."""

from __future__ import annotations

from storage.disk.codec import U64, key1, key3
from storage.disk.schema import ACKS, DELIVERIES, Database
from storage.disk.view import ReadView
from storage.subscription import message_set, span
from storage.subscription.ack_spans import AcknowledgedRuns
from storage.subscription.delivery import DeliveriesInSpans, Delivery
from storage.subscription.open_subscription import OpenSubscription
from storage.topic.entry import Entry
from storage.values.position import Position


class _Ahead:
    """The first record at or after a position in a database whose keys begin with the subscription."""

    __slots__ = ("_at", "_database", "_prefix", "_record", "_view")

    def __init__(self, view: ReadView, database: Database, subscription_id: int) -> None:
        self._view = view
        self._database = database
        self._prefix = key1(subscription_id)
        self._record: tuple[bytes, memoryview] | None = None
        self._at: bytes | None = None

    def at(self, key: bytes) -> memoryview | None:
        """The record with exactly this key; keys are asked for in order."""
        if self._at is None or (self._record is not None and self._record[0] < key):
            self._record = self._view.first(self._database, self._prefix, key)
            self._at = key
        return self._record[1] if self._record is not None and self._record[0] == key else None


class RecordsAhead:
    """The records of a subscription for a walk that asks for entries in order, and writes nothing."""

    __slots__ = ("_acks", "_deliveries", "_in_spans", "_opened", "_runs")

    def __init__(self, opened: OpenSubscription[ReadView]) -> None:
        view, subscription_id = opened.view, opened.subscription_id
        self._opened = opened
        self._deliveries = _Ahead(view, DELIVERIES, subscription_id)
        self._acks = _Ahead(view, ACKS, subscription_id)
        self._in_spans = DeliveriesInSpans(view, subscription_id)
        self._runs = AcknowledgedRuns(view, subscription_id)

    def delivery(self, entry: Entry) -> Delivery:
        """The delivery of an entry, without parts where none is recorded."""
        key = key3(self._opened.subscription_id, *entry.position)
        payload = self._deliveries.at(key)
        if payload is not None:
            return Delivery.decode(key, payload)
        known = self._in_spans.find(entry.position) if span.fits(entry.count) else None
        return known or Delivery(entry.position, entry.count, [])

    def end_of_acknowledged(self, entry: Entry) -> Position | None:
        """The end of the acknowledged entries from an entry on, or None."""
        at = entry.position
        payload = self._acks.at(key3(self._opened.subscription_id, *at))
        if payload is not None and len(payload) == 8:
            return Position(at[0], U64.unpack(payload)[0])
        return self._runs.end_of_run(at) if span.fits(entry.count) else None

    def acknowledged(self, at: Position, count: int) -> int:
        """Messages of an entry that are acknowledged, or covered by a pending cumulative acknowledgement."""
        payload = self._acks.at(key3(self._opened.subscription_id, *at))
        done = self._opened.acks.of(at, count) if payload is None else message_set.decode(payload[8:], count)
        pending = self._opened.cursor.pending_cumulative
        if pending is not None and at <= pending[1:3]:
            whole = at < pending[1:3] or pending[3] < 0
            done |= message_set.everything(count) if whole else message_set.through(pending[3])
        return done
