"""Planning a read of files: what a range of a topic is read from, and how that is cut into partitions.

Runs on the store's host. Sealed ledgers are offloaded on the way if they were not; what is left, the hot tail, is
exported as files of its own. The decided part of the tail never changes, so the next plan reuses its file; the part
behind an open transaction, which only READ_UNCOMMITTED reads, is written for this plan alone, with the states of its
moment.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from storage import IsolationLevel, Store
from txnctl.spark.ledger_files.directory import TopicDirectory
from txnctl.spark.ledger_files.file_piece import Bounds, FilePiece
from txnctl.spark.ledger_files.layout import ASIDE, LEDGERS, RANGES, UNDECIDED, RangeFile, token
from txnctl.spark.ledger_files.manifest import LedgerFile, Span, cover
from txnctl.spark.ledger_files.offload import offload
from txnctl.spark.ledger_files.range_export import export
from txnctl.spark.ledger_files.root import Root
from txnctl.spark.source.topic_range import recreated

if TYPE_CHECKING:
    from txnctl.spark.source.topic_range import TopicRange

PIECE_GROUPS = 4
"""Row groups that one partition reads at the most: about half a million messages."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """What is read of one file.

    Attributes:
        path: under the root.
        bounds: the messages that are meant; None where it is all of the file's.
        has_aborted: whether messages of aborted transactions are in the file.
    """

    path: str
    row_groups: int
    bounds: Bounds | None
    has_aborted: bool


def file_pieces(
    store: Store, ranges: Sequence[TopicRange], place: str, minimum: int | None = None
) -> list[FilePiece]:
    """The same messages in the same order, read from files instead of the store.

    Args:
        ranges: as they were planned; those of one topic follow each other.
        place: where the files lie, as the option offloadPath gives it.
        minimum: the least number of partitions, as far as there are row groups enough.

    Raises:
        TopicNotFound, InvalidValue, OffloadInvalid, UnknownFormat
    """
    root = Root.of(place)
    found = [
        (part, each[0].level is IsolationLevel.READ_COMMITTED and part.has_aborted)
        for each in (list(group) for _, group in groupby(ranges, key=lambda each: each.topic))
        for part in files_of(store, each, root)
    ]
    total = sum(part.row_groups for part, _ in found)
    step = max(1, min(PIECE_GROUPS, total // (minimum or 1)))
    return [
        FilePiece(root, part.path, (first, min(first + step, part.row_groups)), part.bounds, is_committed)
        for part, is_committed in found
        for first in range(0, part.row_groups, step)
    ]


def files_of(store: Store, ranges: Sequence[TopicRange], root: Root) -> list[FilePart]:
    """The files that hold neighbouring ranges of one topic, in order; what no file holds yet is written now.

    Raises:
        TopicNotFound, InvalidValue, OffloadInvalid, UnknownFormat
    """
    first, last = ranges[0], ranges[-1]
    (extent,) = store.reports.topic_extents([first.topic])
    if extent.topic_id != first.topic_id:
        raise recreated(first.topic)
    decided = min(last.through, extent.max_read)
    directory, manifest, *_ = offload(store, first.topic, root, within=(first.after, decided))
    # Ranges are for what no ledger's file holds: those whose ledgers are offloaded may be collected.
    ranges_there = directory.ranges()
    stretches: list[tuple[LedgerFile | RangeFile | None, Span]] = []
    for offloaded, stretch in cover(first.after, decided, manifest.files):
        stretches += [(offloaded, stretch)] if offloaded else cover(*stretch, ranges_there)
    if last.through > decided:
        stretches.append((None, (max(first.after, decided), last.through)))
    parts = []
    for file, stretch in stretches:
        kind = LEDGERS if isinstance(file, LedgerFile) else RANGES if stretch[1] <= decided else UNDECIDED
        held = file or _export(store, directory, kind, stretch, extent.open_txns)
        if held.rows:
            bounds = _bounds(held.after, held.last, stretch, first, last)
            path = f"{directory.path}/{kind}/{held.name}"
            parts.append(FilePart(path, held.row_groups, bounds, held.aborted > 0))
    return parts


def _export(
    store: Store, directory: TopicDirectory, kind: str, span: Span, open_txns: Container[int]
) -> RangeFile:
    """Write a stretch of the tail; nothing is kept of one without messages."""
    directory.make()
    aside = f"range-{token()}"
    with directory.writing(ASIDE, aside) as sink:
        content = export(store, directory.identity.topic, span, sink, open_txns=open_txns)
    file = RangeFile.of(*span, content)
    if content.rows:
        directory.rename(aside, kind, file.name)
    else:
        directory.remove(ASIDE, aside)
    return file


def _bounds(
    after: tuple[int, int], last: tuple[int, int], stretch: Span, begin: TopicRange, end: TopicRange
) -> Bounds | None:
    """What is meant of a file that holds the entries after `after`, up to `last`; None where that is all."""
    first_index = begin.first_index if stretch[0] == begin.after else 0
    stop_index = end.stop_index if stretch[1] == end.through else None
    is_whole = stretch[0] <= after and stretch[1] >= last
    if is_whole and not first_index and stop_index is None:
        return None
    return Bounds(*stretch, first_index, stop_index)
