"""The subscription of a stream: records the stream's start, and its cursor follows the batches that Spark committed.

One query reads a subscription at a time (`stream_hold.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from storage.errors import Busy, InvalidValue, SubscriptionNotFound
from storage.subscription.isolation import IsolationLevel
from storage.values.names import short_topic_name
from storage.values.position import Position

if TYPE_CHECKING:
    from storage import Store
    from storage.reports.extents import Extent
    from storage.reports.stats import SubscriptionStats
    from txnctl.spark.source.stream_hold import StreamHold


class StreamCursor:
    """A subscription of the same name on all topics of the stream. Positions are by full topic name: the last entry
    read.
    """

    def __init__(
        self,
        path: str,
        name: str,
        level: IsolationLevel,
        program: str | None,
        *,
        compacted: bool = False,
        consumer_name: str | None = None,
    ) -> None:
        self._consumer_name = consumer_name
        self._compacted = compacted
        self._path = path
        self._name = name
        self._level = level
        self._program = program
        self._moved: dict[str, Position] = {}
        self._is_attached = False
        self._store: Store | None = None
        self._hold: StreamHold | None = None

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_store": None, "_hold": None}

    def close(self) -> None:
        """End the hold on the subscription."""
        if self._hold is not None:
            self._hold.release()
        if self._store is not None:
            self._store.close()
        self._hold = self._store = None

    def attach(self, extents: Sequence[Extent], starts: Mapping[str, Position]) -> dict[str, Position]:
        """Return the cursor on each topic; a missing subscription is created at `starts`.

        Raises:
            InvalidValue: the subscription has another isolation level, or is shared by consumers; or a start is within
                messages that only offloaded files have, where no subscription can begin.
            SubscriptionBusy: another query reads the subscription, or a consumer is attached.
        """
        return {
            extent.topic: self._ensure_on_topic(extent, starts[extent.topic], begins=True)
            for extent in extents
        }

    def position(self, store: Store, topic: str) -> Position | None:
        """Return the cursor on a topic (full name); None where there is no such subscription yet."""
        try:
            stats = store.reports.subscription_stats(short_topic_name(topic), self._name).row.stats
        except SubscriptionNotFound:
            return None
        return stats.mark_delete_position

    def ensure_on_topics(self, extents: Sequence[Extent], start: Mapping[str, Position]) -> None:
        """Create the subscription on topics added later, and where the checkpoint is older than the subscription.

        Raises:
            InvalidValue, SubscriptionBusy: as `attach`.
        """
        new_extents = [extent for extent in extents if extent.topic not in start]
        if self._is_attached and not new_extents:
            return
        for extent in new_extents if self._is_attached else extents:
            self._ensure_on_topic(extent, start.get(extent.topic, self._before(extent)))
        self._is_attached = True

    def move_to(self, end: Mapping[str, Position]) -> None:
        """Move the cursor to the offset that Spark committed.

        Raises:
            SubscriptionNotFound, TransactionConflict
            ConsumerEvicted: an operator ended this query's hold on the subscription.
        """
        moved = {topic: position for topic, position in end.items() if self._moved.get(topic) != position}
        if not moved:
            return
        # A cursor that lags loses nothing: the next batch moves the cursor if another writer holds the gate now.
        with suppress(Busy):
            store, hold = self._open_for_writing()
            for topic, position in moved.items():
                if not hold.move_through(topic, position):
                    store.admin.acknowledgements.acknowledge_through(
                        short_topic_name(topic), self._name, position
                    )
                self._moved[topic] = position

    def _open_for_writing(self) -> tuple[Store, StreamHold]:
        """Return the store and the hold, opened once: the hold lasts as long as the store is open."""
        # Tasks import this module too, also where lmdb is not installed: import the store on use.
        from storage import Store
        from txnctl.spark.source.stream_hold import StreamHold

        if self._store is None or self._hold is None:
            self._store = Store.open(self._path, program=self._program)
            self._hold = StreamHold(
                self._store,
                self._name,
                self._level,
                compacted=self._compacted,
                consumer_name=self._consumer_name,
            )
        return self._store, self._hold

    def _before(self, extent: Extent) -> Position:
        return extent.before_compacted if self._compacted else extent.before

    def _ensure_on_topic(self, extent: Extent, start: Position, *, begins: bool = False) -> Position:
        """Take hold of the subscription of a topic, and return its cursor; a missing one is created at `start`.

        Args:
            begins: whether the stream begins at the cursor, and not at a checkpoint.
        """
        topic, name = short_topic_name(extent.topic), self._name
        store, hold = self._open_for_writing()
        try:
            self._check_mode(topic, store.reports.subscription_stats(topic, name).row.stats)
        except SubscriptionNotFound:
            (kept,) = store.reports.topic_extents([topic])
            if begins and not self._compacted and kept.has_lost(start):
                raise InvalidValue(
                    f"the stream starts at {start.ledger_id}:{start.entry_id + 1} of {topic}, which only offloaded "
                    f"files have; a subscription begins with the store, at {kept.before.ledger_id}:0",
                    hint=f"Leave the option subscription out, or start at {kept.before.ledger_id}:0.",
                ) from None
        hold.take(extent.topic, extent.begin_behind(start))
        # The former query may have moved the cursor until it let go.
        return store.reports.subscription_stats(topic, name).row.stats.mark_delete_position

    def _check_mode(self, topic: str, stats: SubscriptionStats) -> None:
        """Check that the subscription is one for this stream."""
        if stats.subscription_isolation_level != self._level.value:
            raise InvalidValue(
                f"subscription {self._name} of topic {topic} is {stats.subscription_isolation_level}, "
                f"and the stream reads {self._level.value}",
                hint="Give the stream its isolationLevel, or a subscription of its own.",
            )
        if stats.type not in ("Exclusive", "Failover"):
            raise InvalidValue(
                f"subscription {self._name} of topic {topic} is {stats.type}, shared by consumers",
                hint="Give the stream a subscription of its own.",
            )
