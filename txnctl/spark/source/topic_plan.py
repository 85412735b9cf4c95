"""What a read of topics consists of: from where to where, cut into ranges that are read side by side. Pure.

A batch read is planned once: the bounds are those of one view over all its topics, and every later action on the same
DataFrame reads the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from storage.errors import InvalidValue, TopicNotFound
from storage.subscription.isolation import IsolationLevel
from storage.values.names import short_topic_name
from storage.values.position import MessageId, Position
from txnctl.spark.source.edges import Edge, Moment, Place, Word
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.topic_range import TopicRange

if TYPE_CHECKING:
    from storage.reports.extents import Extent
    from txnctl.spark.options import TopicRead, Topics

RANGE_BYTES: Final = 32 * 1024 * 1024
"""A partition reads about this much, unless more partitions are asked for."""

SLOT_BYTES: Final = 2 * 1024 * 1024
"""What is smaller than this is not worth a task of its own, even if a processor is idle."""

At = Callable[[str, int], Position]
"""The first entry of a topic that was published at or after a time in milliseconds."""

Span = tuple[Position, Position]
"""After the first position, up to and including the second."""


def chosen(extents: Iterable[Extent], topics: Topics) -> list[Extent]:
    """The extents of the topics that are meant.

    Raises:
        TopicNotFound: no topic matches the pattern.
    """
    if topics.pattern is None:
        by_name = {each.topic: each for each in extents}
        return [by_name[name] for name in topics.names]
    matches = re.compile(topics.pattern).fullmatch
    found = [each for each in extents if matches(each.topic) or matches(short_topic_name(each.topic))]
    if not found:
        raise TopicNotFound(
            f"no topic matches the pattern {topics.pattern!r}",
            hint="It has to match the whole name; `txnctl topics list` shows what there is.",
        )
    return found


def check_edge(name: str, edge: Edge, topics: Iterable[str]) -> None:
    """That an edge names no topic that is not read.

    Raises:
        InvalidValue
    """
    strange = sorted(set(edge.each) - set(topics))
    if strange:
        raise InvalidValue(
            f"{name} names topic {short_topic_name(strange[0])}, which is not read",
            hint="Give it among the topics, or leave it out.",
        )


def start(extent: Extent, level: IsolationLevel, place: Place, at: At) -> tuple[Position, int]:
    """After which position reading begins, and at which message of the entry that follows; within the topic."""
    bound, index = extent.bound(level), 0
    if isinstance(place, Word):
        after = extent.before if place.name == "earliest" else bound
    else:
        first, index = _first(extent, place, at)
        after = Position(first.ledger_id, first.entry_id - 1)
    if not extent.before <= after <= bound:
        return min(max(after, extent.before), bound), 0
    return after, index


def end(extent: Extent, level: IsolationLevel, place: Place, at: At) -> tuple[Position, int | None]:
    """The last position that is read, and the message in it before which reading ends; within the topic."""
    bound, index = extent.bound(level), 0
    if isinstance(place, Word):
        return (bound if place.name == "latest" else extent.before), None
    first, index = _first(extent, place, at)
    if index:
        return (first, index) if first <= bound else (bound, None)
    return max(min(Position(first.ledger_id, first.entry_id - 1), bound), extent.before), None


def _first(extent: Extent, place: Position | MessageId | Moment, at: At) -> tuple[Position, int]:
    if isinstance(place, Moment):
        return at(extent.topic, place.time_ms), 0
    if isinstance(place, MessageId):
        return place.position, max(place.batch_index, 0)
    return place, 0


def ranges(
    store: LocalStore, extents: Sequence[Extent], wanted: TopicRead, at: At, slots: int
) -> list[TopicRange]:
    """The partitions of a batch read.

    Args:
        slots: how many tasks may run at once.

    Raises:
        InvalidValue: an edge names a topic that is not read.
    """
    names = [each.topic for each in extents]
    check_edge("startingPosition", wanted.start, names)
    check_edge("endingPosition", wanted.end, names)
    begun = [start(each, wanted.level, wanted.start.of(each.topic), at) for each in extents]
    ended = [end(each, wanted.level, wanted.end.of(each.topic), at) for each in extents]
    spans = [(b[0], e[0]) for b, e in zip(begun, ended, strict=True)]
    found: list[TopicRange] = []
    shares = parts(list(zip(extents, spans, strict=True)), wanted.minimum, slots)
    for extent, span, share, (_, index), (_, stop) in zip(extents, spans, shares, begun, ended, strict=True):
        found += _of_topic(store, extent, wanted.level, cut(extent, span, share), index, stop)
    return found


def _of_topic(
    store: LocalStore, extent: Extent, level: IsolationLevel, spans: list[Span], index: int, stop: int | None
) -> list[TopicRange]:
    is_dirty = level is IsolationLevel.READ_UNCOMMITTED
    open_txns = frozenset(extent.open_txns) if is_dirty else frozenset()
    last = len(spans) - 1
    return [
        TopicRange(
            store, extent.topic, extent.topic_id, after, through, level,
            index if number == 0 else 0, stop if number == last else None, open_txns,
        )
        for number, (after, through) in enumerate(spans)
    ]  # fmt: skip


def whole(
    store: LocalStore, extent: Extent, level: IsolationLevel, span: Span, share: int
) -> list[TopicRange]:
    """A span of whole entries as partitions, as a micro-batch reads it."""
    return _of_topic(store, extent, level, cut(extent, span, share), 0, None)


def parts(spans: Sequence[tuple[Extent, Span]], minimum: int | None, slots: int) -> list[int]:
    """Into how many partitions each of these spans is cut: by its share of the bytes, at least one each."""
    sizes = [weight(extent, span) for extent, span in spans]
    total = sum(sizes)
    by_size = max(-(-total // RANGE_BYTES), min(slots, -(-total // SLOT_BYTES)))
    wanted = max(by_size, minimum or 1)
    return [max(1, -(-wanted * size // total)) if total else 1 for size in sizes]


def weight(extent: Extent, span: Span) -> int:
    """About how many bytes a span holds."""
    return sum(count * each for _, _, count, each in _stretches(extent, span))


def _stretches(extent: Extent, span: Span) -> list[tuple[int, int, int, int]]:
    """What of each ledger lies in a span: ledger, first entry, how many entries, bytes of one on average."""
    found = []
    after, through = span
    for ledger in extent.ledgers:
        first = after.entry_id + 1 if ledger.ledger_id == after.ledger_id else 0
        last = through.entry_id if ledger.ledger_id == through.ledger_id else ledger.entries - 1
        if after.ledger_id <= ledger.ledger_id <= through.ledger_id and first <= last:
            average = max(1, ledger.bytes // max(1, ledger.entries))
            found.append((ledger.ledger_id, first, last - first + 1, average))
    return found


def cut(extent: Extent, span: Span, share: int) -> list[Span]:
    """A span as at most so many of about equal bytes, in order, that join without a gap; none if it is empty.

    Each begins after a position in the ledger of its first entry: `4:-1`, and not the end of ledger 3.
    """
    stretches = _stretches(extent, span)
    total = sum(count * each for _, _, count, each in stretches)
    if not total:
        return []
    wanted = [total * number // share for number in range(1, share)]
    edges, done = [Position(stretches[0][0], stretches[0][1] - 1)], 0
    for ledger_id, first, count, each in stretches:
        while wanted and wanted[0] < done + count * each:
            taken = (wanted.pop(0) - done) // each
            edge = Position(ledger_id, first + taken - 1)
            if edge > edges[-1]:
                edges.append(edge)
        done += count * each
    return list(pairwise([*edges, span[1]]))
