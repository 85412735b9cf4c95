"""A partition of a compacted topic: the messages of its view between two positions, and the plan that makes it.

The view changes when the topic is compacted: a message goes when a newer one of its key comes in. A batch read to the
latest message therefore reads on, behind its planned end, the messages that came into the view since: so the result has
a message of every key, of the planned age or newer. A stream meets the newer message in a later micro-batch. One task
reads the view of a topic, in order; the log behind the horizon is cut into ranges as always.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.values.names import short_topic_name
from storage.values.position import MessageId, Position
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.source.edges import PointWord, TopicPoint
from txnctl.spark.source.entry_slice import EntrySlice
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.message_selection import EVERYTHING, MessageSelection
from txnctl.spark.source.partition import StorePartition
from txnctl.spark.source.topic_range import recreated

if TYPE_CHECKING:
    import pyarrow as pa

    from storage import Store
    from storage.reports.extents import Extent

    Span = tuple[Position, Position]


@dataclass(frozen=True)
class CompactedRange(StorePartition):
    """Messages of one topic's compacted view between two positions.

    Attributes:
        topic, topic_id: full name and id; another id means that the topic was deleted and created again.
        after: the position before the first entry read.
        through: the position of the last entry read.
        first_index: in the first entry, the batch index to begin at.
        stop_index: in the entry at `through`, the batch index to stop before; None for the whole entry.
        beyond: read on what the view has behind this position; None for nothing.
        selection: the messages that are read.
    """

    topic: str
    topic_id: int
    after: Position
    through: Position
    first_index: int = 0
    stop_index: int | None = None
    beyond: Position | None = None
    selection: MessageSelection = EVERYTHING

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the messages as Arrow batches of this schema.

        Raises:
            StoreNotFound: the store is not on this host.
            StoreInvalid, TopicNotFound: store or topic was replaced since the read was planned.
        """
        # Settling without Spark imports this module too, and PyArrow may be missing there.
        from txnctl.spark.source.message_columns import record_batches

        with hints_as_notes(), self.local_store.open_read_only() as store:
            extent = self._extent(store)
            yield from record_batches(self._slices(store, extent), short_topic_name(self.topic), schema)
            self._extent(store)

    def _extent(self, store: Store) -> Extent:
        (extent,) = store.reports.topic_extents([self.topic])
        if extent.topic_id != self.topic_id:
            raise recreated(self.topic)
        return extent

    def _slices(self, store: Store, extent: Extent) -> Iterator[EntrySlice]:
        # Tasks import this module too, also where lmdb is not installed: import the store's modules on use.
        from storage.topic.compaction.compacted_entry import CompactedEntry

        start = MessageId(*extent.begin_behind(self.after), self.first_index)
        for entry in store.reader(self.topic, start=start, read_compacted=True).entries():
            position = Position(entry.ledger_id, entry.entry_id)
            is_done = self.beyond is None and position > self.through
            if is_done or not isinstance(entry, CompactedEntry):
                return
            if position <= self.through or (self.beyond is not None and position > self.beyond):
                is_last = position == self.through and self.stop_index is not None
                stop = entry.index_of(self.stop_index or 0) if is_last else entry.count
                if entry.first_index < stop:
                    for first, last in self.selection.of_entry(entry, entry.first_index, stop):
                        yield EntrySlice(entry, first, last)


def start_in(extent: Extent, point: TopicPoint, start: tuple[Position, int]) -> tuple[Position, int]:
    """Return where reading begins that may begin in the view, before the log.

    Args:
        start: where reading the log begins: the position before the first entry, and an index within that entry.
    """
    if point == PointWord("earliest"):
        return extent.before_compacted, 0
    if isinstance(point, MessageId | Position) and Position(point.ledger_id, point.entry_id) < extent.before:
        index = max(point.batch_index, 0) if isinstance(point, MessageId) else 0
        after = Position(point.ledger_id, point.entry_id - 1)
        return (after, index) if after >= extent.before_compacted else (extent.before_compacted, 0)
    return start


def end_in(
    extent: Extent, point: TopicPoint, end: tuple[Position, int | None]
) -> tuple[Position, int | None]:
    """Return the last position of a read that may end in the view, before the log, and the index to stop before.

    Args:
        end: where reading the log ends.
    """
    if not isinstance(point, MessageId | Position):
        return end
    first = Position(point.ledger_id, point.entry_id)
    if first >= extent.before:
        return end
    if isinstance(point, MessageId) and point.batch_index > 0:
        return first, point.batch_index
    return Position(first.ledger_id, first.entry_id - 1), None


def split_at_horizon(
    store: LocalStore,
    extent: Extent,
    span: Span,
    indexes: tuple[int, int | None] = (0, None),
    *,
    reads_on: bool,
) -> tuple[list[CompactedRange], Span]:
    """Cut the part of a span that the view has off; return that partition, if any, and the rest of the span.

    Args:
        indexes: in the first entry the batch index to begin at, in the last the one to stop before.
        reads_on: also read what comes into the view behind the end of the span.
    """
    (after, through), horizon = span, extent.horizon
    if horizon is None or after >= min(horizon, through):
        return [], span
    beyond = through if reads_on else None
    stop_index = indexes[1] if through <= horizon else None
    part = CompactedRange(
        store, extent.topic, extent.topic_id, after, min(horizon, through), indexes[0], stop_index, beyond
    )
    return [part], (min(horizon, through), through)
