"""The progress of a stream over its topics: where it begins, how far it may go, and what is done.

Every step looks at the store anew: topics may be added, rolled over, or be gone. Whatever Spark remembers is checked,
for it does not do so itself: a topic that was deleted and created again, and a store that was replaced by an older
copy, are errors, never other messages at the same place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from storage.errors import InvalidPosition, InvalidValue
from storage.values.names import short_topic_name
from storage.values.position import MessageId, Position
from txnctl.spark.source import topic_plan
from txnctl.spark.source.edges import Word
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.stream_cursor import StreamCursor
from txnctl.spark.source.topic_range import recreated, trimmed

if TYPE_CHECKING:
    from storage import Store
    from storage.reports.extents import Extent
    from txnctl.spark.options import TopicStream
    from txnctl.spark.source.partition import Partition

_PROGRAM: Final = "Spark stream"
"""What others read as our name."""


class TopicProgress:
    """See the module. Positions are by full topic name; each is the last one that was read."""

    def __init__(self, wanted: TopicStream) -> None:
        self._wanted = wanted
        self._ids: dict[str, int] = {}
        self._cursor = (
            None
            if wanted.subscription is None
            else StreamCursor(wanted.path, wanted.subscription, wanted.level, _PROGRAM)
        )
        self._store: Store | None = None

    def begin(self) -> dict[str, Position]:
        """Where a new stream starts: at the cursor of its subscription, which is created if it is missing.

        Raises:
            InvalidValue: it would start at the latest message without a subscription to keep that place.
            TopicNotFound, InvalidPosition
        """
        wanted = self._wanted
        extents = self._extents()
        topic_plan.check_edge("startingPosition", wanted.start, [each.topic for each in extents])
        starts = {each.topic: self._start(each) for each in extents}
        return starts if self._cursor is None else self._cursor.begin(extents, starts)

    def latest(self) -> dict[str, Position]:
        """How far all topics can be read now, at the level of the stream."""
        return {each.topic: each.bound(self._wanted.level) for each in self._extents()}

    def advance(
        self,
        start: Mapping[str, Position],
        messages: int | None,
        size: int | None,
        target: Mapping[str, Position] | None,
    ) -> dict[str, Position]:
        """How far the next batch reads: with so many messages and bytes at the most, shared among the topics.

        Args:
            target: read no further than this, and nothing of other topics.

        Raises:
            TopicNotFound: a topic was deleted, or deleted and created again.
            InvalidPosition: the store is an older copy of the one that was read.
        """
        extents = [
            each for each in self._extents() if target is None or each.topic in target or each.topic in start
        ]
        spans: dict[str, topic_plan.Span] = {}
        for extent in extents:
            after = self._checked(extent, start.get(extent.topic, extent.before))
            bound = extent.bound(self._wanted.level)
            through = bound if target is None else min(bound, target.get(extent.topic, after))
            spans[extent.topic] = (after, max(after, through))
        if self._cursor is not None:
            self._cursor.keep(extents, start)
        # Spark asks what comes next when all before is done. It says so too, but for the last batch only with the next.
        self.acknowledge({each.topic: start[each.topic] for each in extents if each.topic in start})
        if messages is None and size is None:
            return {topic: through for topic, (_, through) in spans.items()}
        weights = {each.topic: topic_plan.weight(each, spans[each.topic]) for each in extents}
        return _shared(self._reading(), spans, weights, messages, size)

    def ranges(
        self, start: Mapping[str, Position], end: Mapping[str, Position], slots: int
    ) -> Sequence[Partition]:
        """The partitions between two offsets: ranges of the store, or of files where tasks cannot open it.

        Raises:
            TopicNotFound, InvalidPosition, OffloadInvalid
        """
        store = self._reading()
        extents = self._same(store.reports.topic_extents([short_topic_name(topic) for topic in end]))
        spans, place = [], LocalStore.of(store)
        for each in extents:
            after = self._checked(each, start.get(each.topic, each.before))
            spans.append((after, max(after, self._checked(each, end[each.topic]))))
        shares = topic_plan.parts(list(zip(extents, spans, strict=True)), self._wanted.minimum, slots)
        level = self._wanted.level
        ranges = [
            each
            for extent, span, share in zip(extents, spans, shares, strict=True)
            for each in topic_plan.whole(place, extent, level, span, share)
        ]
        if self._wanted.offload is None:
            return ranges
        from txnctl.spark.ledger_files.range_plan import file_pieces

        return file_pieces(store, ranges, self._wanted.offload, self._wanted.minimum or slots)

    def report(self, reached: Mapping[str, Position] | None) -> dict[str, dict[str, Any]]:
        """What the progress of a query shows of each topic: how far it can be read now, `position`.

        Args:
            reached: how far it is read; how many messages that is `behind` is told too.
        """
        store, level = self._reading(), self._wanted.level
        found: dict[str, dict[str, Any]] = {}
        for each in self._extents():
            topic, latest = short_topic_name(each.topic), each.bound(level)
            shown = found[topic] = {"position": str(latest)}
            if reached is not None:
                after = reached.get(each.topic, each.before)
                shown["behind"] = store.reports.count_messages_between(topic, after, latest, level)
        return dict(sorted(found.items()))

    def acknowledge(self, end: Mapping[str, Position]) -> None:
        """Let the cursor of the subscription follow.

        Raises:
            SubscriptionNotFound, TransactionConflict
        """
        if self._cursor is not None:
            self._cursor.follow(end)

    def close(self) -> None:
        """Close the store. Nothing is lost without it."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_store": None}

    def _reading(self) -> Store:
        """The store, opened once: Spark asks a hundred times a second."""
        # Tasks load this module too, and not all of them can load what opens a store.
        from storage import Store

        if self._store is None:
            self._store = Store.open(self._wanted.path, read_only=True, program=_PROGRAM)
        self._store.connection.look_in_place()
        return self._store

    def _extents(self) -> list[Extent]:
        topics = self._wanted.topics
        names = None if topics.pattern is not None else [short_topic_name(name) for name in topics.names]
        return self._same(topic_plan.chosen(self._reading().reports.topic_extents(names), topics))

    def _same(self, extents: list[Extent]) -> list[Extent]:
        """Topics, if they are those that were seen before."""
        for each in extents:
            if self._ids.setdefault(each.topic, each.topic_id) != each.topic_id:
                raise recreated(each.topic)
        return extents

    def _start(self, extent: Extent) -> Position:
        wanted, place = self._wanted, self._wanted.start.of(extent.topic)
        if wanted.subscription is None and place == Word("latest"):
            raise InvalidValue(
                "a stream that starts at the latest message needs a subscription, which keeps that place",
                hint="Give the option subscription, or a startingPosition such as earliest.",
            )
        if isinstance(place, MessageId):
            raise InvalidPosition(
                f"a stream starts at a whole entry, not at {place}", hint=f"Give {place.position}."
            )
        return topic_plan.start(extent, wanted.level, place, self._reading().reports.position_at)[0]

    def _checked(self, extent: Extent, at: Position) -> Position:
        """A position of an offset, if it can be one of this topic."""
        if at > extent.last_confirmed:
            raise InvalidPosition(
                f"the stream has read topic {short_topic_name(extent.topic)} to {at}, and the topic ends at "
                f"{extent.last_confirmed}: the store is another one, or an older copy",
                hint="Begin with a new checkpoint, and a new subscription.",
                topic=extent.topic,
            )
        if at >= extent.before:
            return at
        if not extent.is_trimmed:
            # Ledger ids go on counting when a topic is created again.
            raise recreated(extent.topic)
        if self._wanted.subscription is None:
            raise trimmed(extent.topic, at)
        return extent.before


def _shared(
    store: Store,
    spans: Mapping[str, topic_plan.Span],
    weights: Mapping[str, int],
    messages: int | None,
    size: int | None,
) -> dict[str, Position]:
    """How far each topic is read: the smallest first, so that what they leave over goes to the others.

    Each gets at least one entry, so that none waits for ever behind the others.
    """
    reached = {topic: after for topic, (after, _) in spans.items()}
    waiting = sorted((topic for topic in spans if weights[topic]), key=lambda topic: (weights[topic], topic))
    for number, topic in enumerate(waiting):
        left = len(waiting) - number
        found = store.reports.furthest_position(
            short_topic_name(topic), *spans[topic],
            max_messages=None if messages is None else max(1, messages // left),
            max_bytes=None if size is None else max(1, size // left),
        )  # fmt: skip
        reached[topic] = found.position
        messages = None if messages is None else messages - found.messages
        size = None if size is None else size - found.bytes
    return reached
