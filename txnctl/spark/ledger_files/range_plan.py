"""The plan of a read from files: the files that hold a range of a topic, and the cut into partitions.

Runs on the store's host. Sealed ledgers not yet offloaded are offloaded first; the rest, the hot tail, is exported as
range files. The decided part of the tail never changes, so the next plan reuses its file; the part behind an open
transaction, which only READ_UNCOMMITTED reads, is written for this plan alone, with the transaction states of this
plan.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from storage import IsolationLevel, Position, Store
from storage.values.ledger_ids import may_begin_life
from txnctl.spark.ledger_files.directory import TopicDirectory
from txnctl.spark.ledger_files.file_partition import Bounds, FilePartition, statistics_of
from txnctl.spark.ledger_files.former_files import placed_files
from txnctl.spark.ledger_files.layout import BUILD_DIR, LEDGERS, RANGES, UNDECIDED, RangeFile, token
from txnctl.spark.ledger_files.manifest import LedgerFile, Span, cover
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_export import TopicSpan, export_range
from txnctl.spark.ledger_files.root import Root, open_file
from txnctl.spark.source.message_selection import MessageSelection
from txnctl.spark.source.topic_range import recreated

if TYPE_CHECKING:
    from txnctl.spark.source.topic_range import TopicRange

PARTITION_GROUPS = 4
"""The most row groups of one partition: about half a million messages."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """The part of one file that a read needs.

    Attributes:
        path: under the root.
        bounds: the messages to read; None for the whole file.
        has_aborted: whether the file has messages of aborted transactions.
    """

    path: str
    row_groups: int
    bounds: Bounds | None
    has_aborted: bool


def file_partitions(
    store: Store, ranges: Sequence[TopicRange], offload_path: str, min_partitions: int | None = None
) -> list[FilePartition]:
    """Plan a read of the same messages in the same order from files instead of the store.

    Args:
        ranges: the planned ranges, topic by topic.
        offload_path: the root of the files, as in the option offloadPath.
        min_partitions: the least number of partitions, if there are enough row groups.

    Raises:
        TopicNotFound, InvalidValue, OffloadInvalid, UnknownFormat
    """
    root = Root.of_path(offload_path)
    plans = [
        (plan, topic_ranges[0])
        for topic_ranges in (
            list(topic_group) for _, topic_group in groupby(ranges, key=lambda topic_range: topic_range.topic)
        )
        for plan in plan_files(store, topic_ranges, root)
    ]
    stretches = [
        (plan, of_topic, *stretch)
        for plan, of_topic in plans
        for stretch in row_group_stretches(root, plan, of_topic.selection)
    ]
    total = sum(stop - start for _, _, start, stop in stretches)
    step = max(1, min(PARTITION_GROUPS, total // (min_partitions or 1)))
    return [
        FilePartition(
            root, plan.path, (first, min(first + step, stop)), plan.bounds,
            of_topic.level is IsolationLevel.READ_COMMITTED and plan.has_aborted, of_topic.selection,
        )
        for plan, of_topic, start, stop in stretches
        for first in range(start, stop, step)
    ]  # fmt: skip


def row_group_stretches(root: Root, plan: FilePlan, selection: MessageSelection) -> list[tuple[int, int]]:
    """Return the row groups that may hold selected messages, as stretches; all without a look where keys alone count.

    Raises:
        OffloadInvalid: the file is missing.
    """
    if selection.is_all_entries:
        return [(0, plan.row_groups)]
    import pyarrow.parquet as pq

    stretches: list[tuple[int, int]] = []
    with open_file(root, plan.path) as source:
        metadata = pq.ParquetFile(source).metadata
        for number in range(plan.row_groups):
            if selection.meets_statistics(statistics_of(metadata.row_group(number))):
                start = stretches.pop()[0] if stretches and stretches[-1][1] == number else number
                stretches.append((start, number + 1))
    return stretches


def plan_files(store: Store, ranges: Sequence[TopicRange], root: Root) -> list[FilePlan]:
    """Return the files that hold neighbouring ranges of one topic, in order; missing files are written now.

    Raises:
        TopicNotFound, InvalidValue, OffloadInvalid, UnknownFormat
    """
    first, last = ranges[0], ranges[-1]
    (extent,) = store.reports.topic_extents([first.topic])
    if extent.topic_id != first.topic_id:
        raise recreated(first.topic)
    decided_through = min(last.through, extent.max_read)
    directory, manifest, *_ = offload(store, first.topic, root, within=(first.after, decided_through))
    # Ranges serve only stretches without a ledger file: a range whose ledgers are offloaded may be collected.
    exported = directory.ranges()
    files = placed_files(store, extent, directory, manifest.files)
    placed = {one.file: one for one in files}
    stretches: list[tuple[LedgerFile | RangeFile | None, Span]] = []
    for offloaded, stretch in cover(first.after, decided_through, list(placed)):
        stretches += [(offloaded, stretch)] if offloaded else cover(*stretch, exported)
    # Nothing lies between the last ledger of a life of the store and the first one of the next life.
    ends = {Position(ancestor.last + 1, -1) for ancestor in store.reports.topic_descent(first.topic)}
    stretches = [part for part in stretches if not (part[0] is None and _is_between_lives(*part[1], ends))]
    if last.through > decided_through:
        stretches.append((None, (max(first.after, decided_through), last.through)))
    plans = []
    for file, stretch in stretches:
        kind = (
            LEDGERS
            if isinstance(file, LedgerFile)
            else RANGES
            if stretch[1] <= decided_through
            else UNDECIDED
        )
        source = file or _export(store, directory, kind, stretch, extent.open_txns)
        if source.rows:
            bounds = _bounds(source.after, source.last, stretch, first, last)
            path = f"{directory.path}/{kind}/{source.name}"
            if isinstance(file, LedgerFile):
                path = f"{placed[file].directory.path}/{kind}/{source.name}"
                bounds = bounds or (Bounds(*stretch, 0, None) if placed[file].is_part else None)
            plans.append(FilePlan(path, source.row_groups, bounds, source.aborted > 0))
    return plans


def _is_between_lives(after: Position, through: Position, ends: Container[Position]) -> bool:
    return after in ends and through[1] == -1 and may_begin_life(through[0])


def _export(
    store: Store, directory: TopicDirectory, kind: str, span: Span, open_txns: Container[int]
) -> RangeFile:
    """Export a stretch of the tail; a stretch without messages gets no file."""
    directory.make_directories()
    build_name = f"range-{token()}"
    with directory.writing(BUILD_DIR, build_name) as sink:
        content = export_range(store, TopicSpan(directory.identity.topic, span, open_txns), sink)
    file = RangeFile.of_export(*span, content)
    if content.rows:
        directory.publish_file(build_name, kind, file.name)
    else:
        directory.remove(BUILD_DIR, build_name)
    return file


def _bounds(
    after: Position, last: Position, stretch: Span, begin: TopicRange, end: TopicRange
) -> Bounds | None:
    """Return the bounds of a read of the file with entries (after, last]; None for the whole file."""
    first_index = begin.first_index if stretch[0] == begin.after else 0
    stop_index = end.stop_index if stretch[1] == end.through else None
    is_whole = stretch[0] <= after and stretch[1] >= last
    if is_whole and not first_index and stop_index is None:
        return None
    return Bounds(*stretch, first_index, stop_index)
