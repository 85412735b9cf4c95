"""The plan of a read of topics: bounds within each topic, cut into ranges that are read in parallel. Pure.

A batch read is planned once: its bounds come from one view over all its topics, and every later action on the same
DataFrame reads the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidValue, TopicNotFound
from storage.subscription.isolation import IsolationLevel
from storage.values.names import short_topic_name
from storage.values.position import MessageId, Position
from txnctl.output.shell import line
from txnctl.spark.source.compacted_range import CompactedRange, end_in, split_at_horizon, start_in
from txnctl.spark.source.data_loss import DataLoss
from txnctl.spark.source.edges import Edge, PointWord, PublishTime, TopicPoint
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.topic_range import TopicRange

if TYPE_CHECKING:
    from storage.reports.extents import Extent
    from txnctl.spark.options import TopicReadOptions, Topics, TopicStreamOptions

RANGE_BYTES: Final = 32 * 1024 * 1024
"""Bytes of one partition, about, unless more partitions are requested."""

SLOT_BYTES: Final = 2 * 1024 * 1024
"""A smaller range is not worth a task of its own, even on an idle processor."""

At = Callable[[str, int], Position]
"""Finds the first entry of a topic published at or after a time in milliseconds."""

Span = tuple[Position, Position]
"""Entries after the first position, up to and including the second."""


def select_extents(extents: Iterable[Extent], topics: Topics) -> list[Extent]:
    """Select the extents of the named or matching topics.

    Raises:
        TopicNotFound: no topic matches the pattern.
    """
    if topics.pattern is None:
        by_name = {extent.topic: extent for extent in extents}
        return [by_name[name] for name in topics.names]
    matches = re.compile(topics.pattern).fullmatch
    selected = [
        extent for extent in extents if matches(extent.topic) or matches(short_topic_name(extent.topic))
    ]
    if not selected:
        raise TopicNotFound(
            f"no topic matches the pattern {topics.pattern!r}",
            hint=f"The pattern must match the whole name; `{line('topics list')}` shows the topics.",
        )
    return selected


def check_edge(name: str, edge: Edge, topics: Iterable[str]) -> None:
    """Check that an edge names only topics of the read.

    Raises:
        InvalidValue
    """
    unread = sorted(set(edge.by_topic) - set(topics))
    if unread:
        raise InvalidValue(
            f"{name} names topic {short_topic_name(unread[0])}, which is not read",
            hint="Add the topic to the topics of the read, or remove its bound.",
        )


def start_of(extent: Extent, level: IsolationLevel, point: TopicPoint, first_at: At) -> tuple[Position, int]:
    """Return the position before the first entry read, and the index of the first message within that entry."""
    limit, index = extent.bound(level), 0
    if isinstance(point, PointWord):
        after = extent.before if point.name == "earliest" else limit
    else:
        first, index = _first(extent, point, first_at)
        after = Position(first.ledger_id, first.entry_id - 1)
    if not extent.before <= after <= limit:
        return min(max(after, extent.before), limit), 0
    return after, index


def end_of(
    extent: Extent, level: IsolationLevel, point: TopicPoint, first_at: At
) -> tuple[Position, int | None]:
    """Return the last position read, and the index within that entry of the first message not read."""
    limit, index = extent.bound(level), 0
    if isinstance(point, PointWord):
        return (limit if point.name == "latest" else extent.before), None
    first, index = _first(extent, point, first_at)
    if index:
        return (first, index) if first <= limit else (limit, None)
    return max(min(Position(first.ledger_id, first.entry_id - 1), limit), extent.before), None


def _first(extent: Extent, point: Position | MessageId | PublishTime, first_at: At) -> tuple[Position, int]:
    if isinstance(point, PublishTime):
        return first_at(extent.topic, point.time_ms), 0
    if isinstance(point, MessageId):
        return point.position, max(point.batch_index, 0)
    return point, 0


def ranges(
    store: LocalStore, extents: Sequence[Extent], options: TopicReadOptions, first_at: At, slots: int
) -> list[TopicRange | CompactedRange]:
    """Plan the partitions of a batch read.

    Args:
        slots: how many tasks may run at once.

    Raises:
        InvalidValue: an edge names a topic that is not read.
        MessageNotFound: the start lies within what was trimmed.
    """
    names = [extent.topic for extent in extents]
    check_edge("startingPosition", options.start, names)
    check_edge("endingPosition", options.end, names)
    loss = DataLoss(options.fail_on_data_loss)
    for extent in extents:
        in_view = options.compacted and extent.horizon is not None
        loss.check_start(extent, options.start.point_in(extent.topic), in_view=in_view)
    starts = [
        start_of(extent, options.level, options.start.point_in(extent.topic), first_at) for extent in extents
    ]
    ends = [end_of(extent, options.level, options.end.point_in(extent.topic), first_at) for extent in extents]
    views: list[list[CompactedRange]] = [[] for _ in extents]
    if options.compacted:
        points = [options.start.point_in(extent.topic) for extent in extents]
        starts = [start_in(*of_topic) for of_topic in zip(extents, points, starts, strict=True)]
        points = [options.end.point_in(extent.topic) for extent in extents]
        ends = [end_in(*of_topic) for of_topic in zip(extents, points, ends, strict=True)]
    spans = [(start[0], max(start[0], end[0])) for start, end in zip(starts, ends, strict=True)]
    for number, (extent, span) in enumerate(zip(extents, spans, strict=True)) if options.compacted else ():
        reads_on = options.end.point_in(extent.topic) == PointWord("latest")
        views[number], spans[number] = split_at_horizon(
            store, extent, span, (starts[number][1], ends[number][1]), reads_on=reads_on
        )
        views[number] = [replace(view, selection=options.selection) for view in views[number]]
    whole_spans = spans
    spans = [
        options.selection.narrow(extent, span, first_at)
        for extent, span in zip(extents, whole_spans, strict=True)
    ]
    partitions: list[TopicRange | CompactedRange] = []
    shares = partition_counts(list(zip(extents, spans, strict=True)), options.min_partitions, slots)
    for extent, view, whole, span, share, (_, index), (_, stop) in zip(
        extents, views, whole_spans, spans, shares, starts, ends, strict=True
    ):
        of_topic = _of_topic(store, extent, options, split_span(extent, span, share))
        if of_topic and span[0] == whole[0] and not view:
            of_topic[0] = replace(of_topic[0], first_index=index)
        if of_topic and span[1] == whole[1]:
            of_topic[-1] = replace(of_topic[-1], stop_index=stop)
        partitions += [*view, *of_topic]
    return partitions


def _of_topic(
    store: LocalStore, extent: Extent, options: TopicReadOptions | TopicStreamOptions, spans: list[Span]
) -> list[TopicRange]:
    is_dirty = options.level is IsolationLevel.READ_UNCOMMITTED
    open_txns = frozenset(extent.open_txns) if is_dirty else frozenset()
    return [
        TopicRange(
            store, extent.topic, extent.topic_id, after, through, options.level, open_txns=open_txns,
            fail_on_data_loss=options.fail_on_data_loss, selection=options.selection,
        )
        for after, through in spans
    ]  # fmt: skip


def ranges_of_span(
    store: LocalStore, extent: Extent, options: TopicStreamOptions, span: Span, share: int
) -> list[TopicRange]:
    """Cut a span of whole entries, as a micro-batch reads, into partitions."""
    return _of_topic(store, extent, options, split_span(extent, span, share))


def partition_counts(spans: Sequence[tuple[Extent, Span]], minimum: int | None, slots: int) -> list[int]:
    """Return the number of partitions of each span: its share of the bytes, at least one each."""
    sizes = [span_bytes(extent, span) for extent, span in spans]
    total = sum(sizes)
    by_size = max(-(-total // RANGE_BYTES), min(slots, -(-total // SLOT_BYTES)))
    count = max(by_size, minimum or 1)
    return [max(1, -(-count * size // total)) if total else 1 for size in sizes]


def span_bytes(extent: Extent, span: Span) -> int:
    """Estimate the bytes of a span."""
    return sum(count * average for _, _, count, average in _stretches(extent, span))


def _stretches(extent: Extent, span: Span) -> list[tuple[int, int, int, int]]:
    """Return the part of each ledger in a span: ledger, first entry, number of entries, average bytes of an entry."""
    stretches = []
    after, through = span
    for ledger in extent.ledgers:
        first = after.entry_id + 1 if ledger.ledger_id == after.ledger_id else 0
        last = through.entry_id if ledger.ledger_id == through.ledger_id else ledger.entries - 1
        if after.ledger_id <= ledger.ledger_id <= through.ledger_id and first <= last:
            average = max(1, ledger.bytes // max(1, ledger.entries))
            stretches.append((ledger.ledger_id, first, last - first + 1, average))
    return stretches


def split_span(extent: Extent, span: Span, share: int) -> list[Span]:
    """Cut a span into at most `share` spans of about equal bytes, in order and without a gap; none if the span is
    empty.

    Each result begins after a position in the ledger of its first entry: `4:-1`, and not the end of ledger 3.
    """
    stretches = _stretches(extent, span)
    total = sum(count * average for _, _, count, average in stretches)
    if not total:
        return []
    cuts = [total * number // share for number in range(1, share)]
    edges, done = [Position(stretches[0][0], stretches[0][1] - 1)], 0
    for ledger_id, first, count, average in stretches:
        while cuts and cuts[0] < done + count * average:
            taken = (cuts.pop(0) - done) // average
            edge = Position(ledger_id, first + taken - 1)
            if edge > edges[-1]:
                edges.append(edge)
        done += count * average
    return list(pairwise([*edges, span[1]]))
