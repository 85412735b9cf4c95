"""The subscription of a stream: it keeps where the stream starts, and its cursor follows what Spark has done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from storage.errors import Busy, InvalidValue, SubscriptionNotFound
from storage.json_form import to_json
from storage.subscription.isolation import IsolationLevel
from storage.values.names import short_topic_name
from storage.values.position import Position

if TYPE_CHECKING:
    from storage import Store
    from storage.reports.extents import Extent


class StreamCursor:
    """One name on all topics of the stream. Positions are by full topic name; each is the last one that was read."""

    def __init__(self, path: str, name: str, level: IsolationLevel, program: str) -> None:
        self._path = path
        self._name = name
        self._level = level
        self._program = program
        self._moved: dict[str, Position] = {}
        self._is_there = False

    def begin(self, extents: Sequence[Extent], starts: Mapping[str, Position]) -> dict[str, Position]:
        """Where the stream starts: at the cursor on each topic, which is created at `starts` where it is missing.

        Raises:
            InvalidValue: the subscription has another level, or is shared by consumers.
        """
        with self._writing() as store:
            return {each.topic: self._on(store, each, starts[each.topic]) for each in extents}

    def keep(self, extents: Sequence[Extent], start: Mapping[str, Position]) -> None:
        """Topics that came later, and checkpoints that are older than the subscription, get one now.

        Raises:
            InvalidValue: as `begin`.
        """
        fresh = [each for each in extents if each.topic not in start]
        if self._is_there and not fresh:
            return
        with self._writing() as store:
            for each in fresh if self._is_there else extents:
                self._on(store, each, start.get(each.topic, each.before))
        self._is_there = True

    def follow(self, end: Mapping[str, Position]) -> None:
        """Move the cursor to where the stream is done.

        Raises:
            SubscriptionNotFound, TransactionConflict
        """
        moved = {topic: at for topic, at in end.items() if self._moved.get(topic) != at}
        if not moved:
            return
        # The cursor may well come later: nothing is lost if another writer is in the way now.
        with suppress(Busy), self._writing() as store:
            for topic, at in moved.items():
                store.admin.acknowledgements.acknowledge_through(short_topic_name(topic), self._name, at)
                self._moved[topic] = at

    def _writing(self) -> Store:
        """A handle of the store for one change."""
        # Tasks load this module too, and not all of them can load what opens a store.
        from storage import Store

        return Store.open(self._path, program=self._program)

    def _on(self, store: Store, extent: Extent, start: Position) -> Position:
        """The cursor on a topic; it is created at `start` if it is missing."""
        topic, name, level = short_topic_name(extent.topic), self._name, self._level
        try:
            stats = to_json(store.reports.subscription_stats(topic, name))
        except SubscriptionNotFound:
            first = Position(start.ledger_id, start.entry_id + 1)
            made = to_json(
                store.admin.subscriptions.create_subscription(
                    topic, name, subscription_isolation_level=level, initial_position=first
                )
            )
            return Position.parse(made["markDeletePosition"])
        if stats["subscriptionIsolationLevel"] != level.value:
            raise InvalidValue(
                f"subscription {name} of topic {topic} is {stats['subscriptionIsolationLevel']}, "
                f"and the stream reads {level.value}",
                hint="Give the stream its isolationLevel, or a subscription of its own.",
            )
        if stats["type"] not in ("Exclusive", "Failover"):
            raise InvalidValue(
                f"subscription {name} of topic {topic} is {stats['type']}: consumers share it",
                hint="Give the stream a subscription of its own.",
            )
        return Position.parse(stats["markDeletePosition"])
