"""A partition of a topic: messages between two positions, read from the store.

A task that runs again gives the same rows. READ_COMMITTED: entries at or below an earlier maxReadPosition never change.
READ_UNCOMMITTED: a transaction that was open when the read was planned is reported as open, whatever its outcome since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.errors import MessageNotFound, TopicNotFound
from storage.subscription.isolation import IsolationLevel
from storage.values.names import short_topic_name
from storage.values.position import MessageId, Position
from storage.values.txn_state import TransactionState
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.source.data_loss import DataLoss
from txnctl.spark.source.entry_slice import EntrySlice
from txnctl.spark.source.message_selection import EVERYTHING, MessageSelection
from txnctl.spark.source.partition import StorePartition

if TYPE_CHECKING:
    import pyarrow as pa

    from storage import Store
    from storage.reports.extents import Extent


@dataclass(frozen=True)
class TopicRange(StorePartition):
    """Messages of one topic between two positions.

    Attributes:
        topic, topic_id: full name and id; another id means that the topic was deleted and created again.
        after: the position before the first entry read, in the ledger of that entry.
        through: the position of the last entry read.
        first_index: in the first entry, the batch index to begin at.
        stop_index: in the entry at `through`, the batch index to stop before; None for the whole entry.
        open_txns: transactions that count as open.
        fail_on_data_loss: whether messages that were trimmed since the plan are an error, or are left out.
        selection: the messages that are read.
    """

    topic: str
    topic_id: int
    after: Position
    through: Position
    level: IsolationLevel
    first_index: int = 0
    stop_index: int | None = None
    open_txns: frozenset[int] = frozenset()
    fail_on_data_loss: bool = True
    selection: MessageSelection = EVERYTHING

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the messages as Arrow batches of this schema.

        Raises:
            StoreNotFound: the store is not on this host.
            StoreInvalid, TopicNotFound: store or topic was replaced since the read was planned.
            MessageNotFound: messages were trimmed since the read was planned.
        """
        # Settling without Spark reads the ranges too, and PyArrow may be missing there.
        from txnctl.spark.source.message_columns import record_batches

        with hints_as_notes(), self.local_store.open_read_only() as store:
            yield from record_batches(self.slices(store), short_topic_name(self.topic), schema)

    def slices(self, store: Store) -> Iterator[EntrySlice]:
        """Read the messages from the open store.

        Raises:
            TopicNotFound: the topic was replaced since the read was planned.
            MessageNotFound: messages were trimmed since the read was planned.
        """
        yield from self._slices(store)
        self._current_extent(store)

    def _current_extent(self, store: Store) -> Extent:
        """Return the extent of the topic, after checking that the topic is the planned one."""
        (extent,) = store.reports.topic_extents([self.topic])
        if extent.topic_id != self.topic_id:
            raise recreated(self.topic)
        return extent

    def _slices(self, store: Store) -> Iterator[EntrySlice]:
        """Yield the messages of the range; those trimmed since the plan, or during the read, are lost."""
        after, index = self.after, self.first_index
        loss = DataLoss(self.fail_on_data_loss)
        while True:
            extent = self._current_extent(store)
            loss.check_after(extent, after)
            if extent.has_lost(after):
                after, index = extent.before, 0
            try:
                for entry_slice in self._read(store, MessageId(*extent.begin_behind(after), index)):
                    entry = entry_slice.entry
                    after, index = Position(entry.ledger_id, entry.entry_id), 0
                    yield entry_slice
                return
            except MessageNotFound:
                continue

    def _read(self, store: Store, start: MessageId) -> Iterator[EntrySlice]:
        through, is_dirty = tuple(self.through), self.level is IsolationLevel.READ_UNCOMMITTED
        takes_all = self.selection.is_all
        for entry in store.reader(self.topic, start=start, isolation_level=self.level).entries():
            position = (entry.ledger_id, entry.entry_id)
            if position > through:
                return
            if is_dirty and entry.txn in self.open_txns:
                entry.txn_state = TransactionState.OPEN
            stop = entry.count if position < through or self.stop_index is None else self.stop_index
            if entry.first_index >= stop:
                continue
            if takes_all:
                yield EntrySlice(entry, entry.first_index, min(stop, entry.count))
            else:
                for first, last in self.selection.of_entry(entry, entry.first_index, min(stop, entry.count)):
                    yield EntrySlice(entry, first, last)


def recreated(topic: str) -> TopicNotFound:
    """Return the error for a topic that was deleted and created again under its name."""
    return TopicNotFound(
        f"topic {short_topic_name(topic)} was deleted and created again meanwhile",
        hint="Read the topic from the beginning; a stream needs a new checkpoint and a new subscription.",
        topic=topic,
    )
