"""Progress of a stream over its topics: start, end of the next micro-batch, committed offsets.

Every step reads the store anew: topics may be added, rolled over or deleted. Offsets from Spark's checkpoint are
validated, because Spark does not validate them: a topic deleted and created again, and a store replaced by an older
copy, are errors instead of different messages at the same positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from storage.client.block_end import close_after
from storage.errors import InvalidPosition, InvalidValue
from storage.values.names import short_topic_name
from storage.values.position import MessageId, Position
from txnctl.spark.source import topic_plan
from txnctl.spark.source.compacted_range import CompactedRange, split_at_horizon, start_in
from txnctl.spark.source.data_loss import DataLoss
from txnctl.spark.source.edges import PointWord
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.stream_cursor import StreamCursor
from txnctl.spark.source.topic_range import recreated

if TYPE_CHECKING:
    from storage import Store
    from storage.reports.extents import Extent, Reached
    from txnctl.spark.ledger_files.archive import Archives
    from txnctl.spark.options import TopicStreamOptions
    from txnctl.spark.source.partition import Partition

_PROGRAM: Final = "Spark stream"
"""The program name of a query of Spark in `txnctl status`."""


class TopicReport(TypedDict):
    """The entry of one topic in the progress that Spark shows; Spark writes it as JSON."""

    position: str
    behind: NotRequired[int]


class TopicProgress:
    """Progress of one stream. Positions are by full topic name: the last entry read."""

    def __init__(self, options: TopicStreamOptions, consumer_name: str | None = None) -> None:
        """Args:
        consumer_name: of the consumer that holds the subscription; None for a query of Spark.
        """
        self._options = options
        # None is the name of the script.
        self._program = _PROGRAM if consumer_name is None else None
        self._ids: dict[str, int] = {}
        self._cursor = (
            None
            if options.subscription is None
            else StreamCursor(
                options.path,
                options.subscription,
                options.level,
                self._program,
                compacted=options.compacted,
                consumer_name=consumer_name,
            )
        )
        self._store: Store | None = None
        self._loss = DataLoss(options.fail_on_data_loss)
        self._archives: Archives | None = None

    def begin(self) -> dict[str, Position]:
        """Return the start of a new stream: the cursor of its subscription, which is created if missing.

        Raises:
            InvalidValue: the start is the latest message, and no subscription records that start.
            TopicNotFound, InvalidPosition
        """
        options = self._options
        extents = self._extents()
        topic_plan.check_edge("startingPosition", options.start, [extent.topic for extent in extents])
        starts = {extent.topic: self._start_in(extent) for extent in extents}
        return starts if self._cursor is None else self._cursor.attach(extents, starts)

    def backlog(self) -> int:
        """Count the messages that a new stream would read until now; its subscription is not created.

        Raises:
            TopicNotFound, InvalidPosition, InvalidValue: as `begin`.
        """
        store, messages = self._open_store(), 0
        for extent in self._extents():
            start = self._start_in(extent)
            cursor = None if self._cursor is None else self._cursor.position(store, extent.topic)
            messages += store.reports.count_messages_between(
                short_topic_name(extent.topic),
                start if cursor is None else cursor,
                extent.bound(self._options.level),
                self._options.level,
            )
        return messages

    def latest(self) -> dict[str, Position]:
        """Return the last readable position of every topic at the isolation level of the stream."""
        return {extent.topic: extent.bound(self._options.level) for extent in self._extents()}

    def advance(
        self,
        start: Mapping[str, Position],
        max_messages: int | None,
        max_bytes: int | None,
        target: Mapping[str, Position] | None,
    ) -> dict[str, Position]:
        """Return the end of the next micro-batch; limits of messages and bytes are shared among the topics.

        Args:
            target: the end of the query; topics missing in it are not read.

        Raises:
            TopicNotFound: a topic was deleted, or deleted and created again.
            InvalidPosition: the store is an older copy of the store in the checkpoint.
        """
        extents = [
            extent
            for extent in self._extents()
            if target is None or extent.topic in target or extent.topic in start
        ]
        spans: dict[str, topic_plan.Span] = {}
        for extent in extents:
            after = self._valid_position(extent, start.get(extent.topic, self._before(extent)))
            bound = extent.bound(self._options.level)
            through = bound if target is None else min(bound, target.get(extent.topic, after))
            spans[extent.topic] = (after, max(after, through))
        if self._cursor is not None:
            self._cursor.ensure_on_topics(extents, start)
        # A request for the next end implies that all earlier batches are committed; Spark reports the commit of the
        # last batch only with the next batch.
        self.acknowledge({extent.topic: start[extent.topic] for extent in extents if extent.topic in start})
        if max_messages is None and max_bytes is None:
            ends = {topic: through for topic, (_, through) in spans.items()}
        else:
            weights = {extent.topic: topic_plan.span_bytes(extent, spans[extent.topic]) for extent in extents}
            ends = _share_limits(self._reach, spans, weights, max_messages, max_bytes)
        return self._at_whole_transactions(extents, spans, ends) if self._options.whole_transactions else ends

    def _at_whole_transactions(
        self,
        extents: Sequence[Extent],
        spans: Mapping[str, topic_plan.Span],
        ends: Mapping[str, Position],
    ) -> dict[str, Position]:
        """Move the ends so that the messages of each transaction of a topic come in one micro-batch.

        An end within trimmed messages, whose files tell nothing of transactions, stays.
        """
        reports, moved = self._open_store().reports, dict(ends)
        for extent in extents:
            after, through = spans[extent.topic]
            if ends[extent.topic] >= extent.before:
                moved[extent.topic] = reports.whole_transactions(
                    short_topic_name(extent.topic), after, ends[extent.topic], through
                )
        return moved

    def _reach(
        self, topic: str, span: topic_plan.Span, max_messages: int | None, max_bytes: int | None
    ) -> Reached:
        """Return the furthest position of a span within limits: in the archive of the topic, or in the store."""
        if self._archives is not None:
            archived = self._archives.reach(topic, *span, max_messages, max_bytes)
            if archived is not None:
                return archived
        return self._open_store().reports.furthest_position(
            short_topic_name(topic), *span, max_messages=max_messages, max_bytes=max_bytes
        )

    def ranges(
        self, start: Mapping[str, Position], end: Mapping[str, Position], slots: int
    ) -> Sequence[Partition]:
        """Plan the partitions between two offsets: ranges of the store, or of files where tasks cannot open the store.

        Raises:
            TopicNotFound, InvalidPosition, OffloadInvalid
        """
        store = self._open_store()
        extents = self._with_archives(
            self._check_not_recreated(store.reports.topic_extents([short_topic_name(topic) for topic in end]))
        )
        spans, views, local_store = [], list[CompactedRange](), LocalStore.of_open_store(store)
        for extent in extents:
            after = self._valid_position(extent, start.get(extent.topic, self._before(extent)))
            span = after, max(after, self._valid_position(extent, end[extent.topic]))
            if self._options.compacted:
                view, span = split_at_horizon(local_store, extent, span, reads_on=False)
                views += [replace(part, selection=self._options.selection) for part in view]
            spans.append(span)
        shares = topic_plan.partition_counts(
            list(zip(extents, spans, strict=True)), self._options.min_partitions, slots
        )
        ranges = [
            topic_range
            for extent, span, share in zip(extents, spans, shares, strict=True)
            for topic_range in topic_plan.ranges_of_span(local_store, extent, self._options, span, share)
        ]
        if self._options.offload_path is None:
            return [*views, *ranges]
        from txnctl.spark.ledger_files.range_plan import file_partitions

        return file_partitions(
            store, ranges, self._options.offload_path, self._options.min_partitions or slots
        )

    def report(self, reached: Mapping[str, Position] | None) -> dict[str, TopicReport]:
        """Return the progress of each topic: its last readable position, and the messages behind that position.

        Args:
            reached: the end of the last micro-batch; without it `behind` is left out.
        """
        store, level = self._open_store(), self._options.level
        topics: dict[str, TopicReport] = {}
        for extent in self._extents():
            topic, latest = short_topic_name(extent.topic), extent.bound(level)
            topic_report = topics[topic] = {"position": str(latest)}
            if reached is not None:
                after = reached.get(extent.topic, extent.before)
                behind = store.reports.count_messages_between(topic, after, latest, level)
                if self._archives is not None:
                    behind += self._archives.count_after(extent.topic, after, level)
                topic_report["behind"] = behind
        return dict(sorted(topics.items()))

    def acknowledge(self, end: Mapping[str, Position]) -> None:
        """Move the cursor of the subscription.

        Raises:
            SubscriptionNotFound, TransactionConflict
        """
        if self._cursor is not None:
            self._cursor.move_to(end)

    def close(self) -> None:
        """Close the store; nothing is lost without a close."""
        try:
            if self._cursor is not None:
                self._cursor.close()
        finally:
            if self._store is not None:
                self._store.close()
                self._store = None

    def __enter__(self) -> TopicProgress:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        close_after(kind, self.close)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_store": None, "_archives": None}

    def _open_store(self) -> Store:
        """Return the store, opened once: Spark asks for offsets a hundred times a second."""
        # Tasks import this module too, also where lmdb is not installed: import the store on use.
        from storage import Store

        if self._store is None:
            self._store = Store.open(self._options.path, read_only=True, program=self._program)
        self._store.connection.look_in_place()
        return self._store

    def _extents(self) -> list[Extent]:
        topics = self._options.topics
        names = None if topics.pattern is not None else [short_topic_name(name) for name in topics.names]
        extents = topic_plan.select_extents(self._open_store().reports.topic_extents(names), topics)
        return self._with_archives(self._check_not_recreated(extents))

    def _with_archives(self, extents: list[Extent]) -> list[Extent]:
        """Return the extents with ledgers that only the offloaded files have, if the stream reads files."""
        if self._options.offload_path is None:
            return extents
        if self._archives is None:
            from txnctl.spark.ledger_files.archive import Archives
            from txnctl.spark.ledger_files.root import Root

            self._archives = Archives(Root.of_path(self._options.offload_path))
        return self._archives.extend(self._open_store(), extents)

    def _check_not_recreated(self, extents: list[Extent]) -> list[Extent]:
        """Return the extents, after checking that no topic was deleted and created again."""
        for extent in extents:
            if self._ids.setdefault(extent.topic, extent.topic_id) != extent.topic_id:
                raise recreated(extent.topic)
        return extents

    def _start_in(self, extent: Extent) -> Position:
        options, point = self._options, self._options.start.point_in(extent.topic)
        if options.subscription is None and point == PointWord("latest"):
            raise InvalidValue(
                "a stream that starts at the latest message needs a subscription to record its start",
                hint="Give the option subscription, or a startingPosition such as earliest.",
            )
        if isinstance(point, MessageId):
            raise InvalidPosition(
                f"a stream starts at a whole entry, not at {point}", hint=f"Give {point.position}."
            )
        self._loss.check_start(extent, point, in_view=options.compacted and extent.horizon is not None)
        first_at: topic_plan.At = self._open_store().reports.position_at
        if self._archives is not None:
            first_at = self._archives.first_at(first_at)
        start = topic_plan.start_of(extent, options.level, point, first_at)
        return (start_in(extent, point, start) if options.compacted else start)[0]

    def _before(self, extent: Extent) -> Position:
        """The position before the first message of a topic that is read."""
        return extent.before_compacted if self._options.compacted else extent.before

    def _valid_position(self, extent: Extent, position: Position) -> Position:
        """Return a position of an offset, after checking that the topic can contain it."""
        if position > extent.last_confirmed:
            raise InvalidPosition(
                f"the stream has read topic {short_topic_name(extent.topic)} to {position}, and the topic ends at "
                f"{extent.last_confirmed}: this is a different store, or an older copy",
                hint="Begin with a new checkpoint, and a new subscription.",
                topic=extent.topic,
            )
        if position >= extent.before:
            self._loss.check_issued(extent, position)
            return position
        if self._options.compacted and extent.horizon is not None and position < extent.horizon:
            return position
        if not extent.is_trimmed:
            # A topic created again continues the ledger ids.
            raise recreated(extent.topic)
        self._loss.check_issued(extent, position)
        self._loss.check_after(extent, position)
        return extent.before if extent.has_lost(position) else position


def _share_limits(
    reach_in: Callable[[str, topic_plan.Span, int | None, int | None], Reached],
    spans: Mapping[str, topic_plan.Span],
    weights: Mapping[str, int],
    max_messages: int | None,
    max_bytes: int | None,
) -> dict[str, Position]:
    """Return the end of each topic: the smallest topic first, so that its unused share goes to larger topics.

    Each topic gets at least one entry, so that no topic starves behind a busy one.
    """
    ends = {topic: after for topic, (after, _) in spans.items()}
    waiting = sorted((topic for topic in spans if weights[topic]), key=lambda topic: (weights[topic], topic))
    for number, topic in enumerate(waiting):
        remaining = len(waiting) - number
        reach = reach_in(
            topic, spans[topic],
            None if max_messages is None else max(1, max_messages // remaining),
            None if max_bytes is None else max(1, max_bytes // remaining),
        )  # fmt: skip
        ends[topic] = reach.position
        max_messages = None if max_messages is None else max_messages - reach.messages
        max_bytes = None if max_bytes is None else max_bytes - reach.bytes
    return ends
