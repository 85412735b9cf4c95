"""The subscription of a stream: records the stream's start, and its cursor follows the batches that Spark committed."""

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


class StreamCursor:
    """A subscription of the same name on all topics of the stream. Positions are by full topic name: the last entry
    read.
    """

    def __init__(
        self, path: str, name: str, level: IsolationLevel, program: str, *, compacted: bool = False
    ) -> None:
        self._compacted = compacted
        self._path = path
        self._name = name
        self._level = level
        self._program = program
        self._moved: dict[str, Position] = {}
        self._is_attached = False

    def attach(self, extents: Sequence[Extent], starts: Mapping[str, Position]) -> dict[str, Position]:
        """Return the cursor on each topic; a missing subscription is created at `starts`.

        Raises:
            InvalidValue: the subscription has another isolation level, or is shared by consumers; or a start is within
                messages that only offloaded files have, where no subscription can begin.
        """
        with self._open_for_writing() as store:
            return {
                extent.topic: self._ensure_on_topic(store, extent, starts[extent.topic], begins=True)
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
            InvalidValue: as `attach`.
        """
        new_extents = [extent for extent in extents if extent.topic not in start]
        if self._is_attached and not new_extents:
            return
        with self._open_for_writing() as store:
            for extent in new_extents if self._is_attached else extents:
                self._ensure_on_topic(store, extent, start.get(extent.topic, self._before(extent)))
        self._is_attached = True

    def move_to(self, end: Mapping[str, Position]) -> None:
        """Move the cursor to the offset that Spark committed.

        Raises:
            SubscriptionNotFound, TransactionConflict
        """
        moved = {topic: position for topic, position in end.items() if self._moved.get(topic) != position}
        if not moved:
            return
        # A cursor that lags loses nothing: the next batch moves the cursor if another writer holds the gate now.
        with suppress(Busy), self._open_for_writing() as store:
            for topic, position in moved.items():
                store.admin.acknowledgements.acknowledge_through(
                    short_topic_name(topic), self._name, position
                )
                self._moved[topic] = position

    def _open_for_writing(self) -> Store:
        """Open the store for one change."""
        # Tasks import this module too, also where lmdb is not installed: import the store on use.
        from storage import Store

        return Store.open(self._path, program=self._program)

    def _before(self, extent: Extent) -> Position:
        return extent.before_compacted if self._compacted else extent.before

    def _ensure_on_topic(
        self, store: Store, extent: Extent, start: Position, *, begins: bool = False
    ) -> Position:
        """Return the cursor on a topic; a missing subscription is created at `start`.

        Args:
            begins: whether the stream begins at the cursor, and not at a checkpoint.
        """
        topic, name, level = short_topic_name(extent.topic), self._name, self._level
        try:
            stats = store.reports.subscription_stats(topic, name).row.stats
        except SubscriptionNotFound:
            first = Position(start.ledger_id, start.entry_id + 1)
            (kept,) = store.reports.topic_extents([topic])
            if begins and not self._compacted and kept.has_lost(start):
                raise InvalidValue(
                    f"the stream starts at {first} of {topic}, which only offloaded files have; a subscription "
                    f"begins with the store, at {kept.before.ledger_id}:0",
                    hint=f"Leave the option subscription out, or start at {kept.before.ledger_id}:0.",
                ) from None
            made = store.admin.subscriptions.create_subscription(
                topic,
                name,
                subscription_isolation_level=level,
                initial_position=first,
                read_compacted=self._compacted,
            )
            return made.mark_delete_position
        if stats.subscription_isolation_level != level.value:
            raise InvalidValue(
                f"subscription {name} of topic {topic} is {stats.subscription_isolation_level}, "
                f"and the stream reads {level.value}",
                hint="Give the stream its isolationLevel, or a subscription of its own.",
            )
        if stats.type not in ("Exclusive", "Failover"):
            raise InvalidValue(
                f"subscription {name} of topic {topic} is {stats.type}, shared by consumers",
                hint="Give the stream a subscription of its own.",
            )
        return stats.mark_delete_position
