"""A partition of row groups of a Parquet file: self-contained for a task on another machine, without the store.

The partition has the file, the row groups, bounds where the file exceeds the planned range, and whether messages of
aborted transactions are filtered out. The states of transactions in the file are those at the time of its export.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from storage import Position
from txnctl.spark.ledger_files.root import Root, open_file
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.source.message_selection import EVERYTHING, MessageSelection
from txnctl.spark.source.partition import Partition

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of messages to read from a file that exceeds this range.

    Attributes:
        after: the position before the first entry read.
        through: the position of the last entry read.
        first_index: in the first entry, the batch index to begin at.
        stop_index: in the entry at `through`, the batch index to stop before; None for the whole entry.
    """

    after: Position
    through: Position
    first_index: int = 0
    stop_index: int | None = None

    def row_mask(self, batch: pa.RecordBatch) -> Any:
        """Return a boolean array: the rows within the bounds."""
        import pyarrow.compute as pc

        ledger, entry = batch["ledgerId"], batch["entryId"]

        def is_at(position: Position) -> Any:
            return pc.and_(pc.equal(ledger, position[0]), pc.equal(entry, position[1]))

        (low, low_entry), (high, high_entry) = self.after, self.through
        is_after = pc.or_(
            pc.greater(ledger, low), pc.and_(pc.equal(ledger, low), pc.greater(entry, low_entry))
        )
        is_before = pc.or_(
            pc.less(ledger, high), pc.and_(pc.equal(ledger, high), pc.less_equal(entry, high_entry))
        )
        mask = pc.and_(is_after, is_before)
        if self.first_index:
            is_earlier = pc.less(batch["batchIndex"], self.first_index)
            mask = pc.and_not(mask, pc.and_(is_at(Position(low, low_entry + 1)), is_earlier))
        if self.stop_index is not None:
            is_later = pc.greater_equal(batch["batchIndex"], self.stop_index)
            mask = pc.and_not(mask, pc.and_(is_at(self.through), is_later))
        return mask


@dataclass(frozen=True)
class FilePartition(Partition):
    """Row groups of one file.

    Attributes:
        path: of the file under the root.
        groups: the first row group, and the one after the last.
        bounds: None where all messages of the file are read.
        is_committed: whether messages of aborted transactions are filtered out.
        selection: the messages that are read.
    """

    root: Root
    path: str
    groups: tuple[int, int]
    bounds: Bounds | None
    is_committed: bool
    selection: MessageSelection = EVERYTHING

    def store_path(self) -> str:
        return self.root.uri

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the rows as Arrow batches of exactly this schema.

        Raises:
            OffloadInvalid: the file is missing.
        """
        import pyarrow.parquet as pq

        with hints_as_notes(), open_file(self.root, self.path) as source:
            file = pq.ParquetFile(source, pre_buffer=True)
            groups = [group for group in range(*self.groups) if self._touches(file.metadata.row_group(group))]
            if not groups:
                return
            columns = list(dict.fromkeys([*schema.names, *self._filter_columns()]))
            for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns):
                rows = self._filter(batch)
                if rows.num_rows:
                    yield _conforming(rows, schema)

    def _filter_columns(self) -> list[str]:
        """Return the columns that the filters need."""
        positions = [] if self.bounds is None else ["ledgerId", "entryId", "batchIndex"]
        states = ["txnState"] if self.is_committed else []
        return [*positions, *states, *self.selection.columns()]

    def _touches(self, group: Any) -> bool:
        """Report whether a row group may contain messages to read, by its statistics."""
        if self.bounds is None and self.selection.is_all_entries:
            return True
        statistics = statistics_of(group)
        if not self.selection.meets_statistics(statistics):
            return False
        if self.bounds is None:
            return True
        after, through = self.bounds.after, self.bounds.through
        ledger, entry = statistics["ledgerId"], statistics["entryId"]
        if ledger.min == ledger.max:
            return (ledger.max, entry.max) > after and (ledger.min, entry.min) <= through
        return bool(ledger.max >= after[0] and ledger.min <= through[0])

    def _filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that pass the filters."""
        import pyarrow.compute as pc

        if self.bounds is not None:
            batch = batch.filter(self.bounds.row_mask(batch))
        if self.is_committed:
            batch = batch.filter(pc.not_equal(pc.coalesce(batch["txnState"], ""), "ABORTED"))
        if not self.selection.is_all:
            batch = batch.filter(self.selection.row_mask(batch))
        return batch


def statistics_of(group: Any) -> dict[str, Any]:
    """Return the statistics of a row group, objects of PyArrow, by column."""
    return {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}


def _conforming(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch with the columns of the schema: order, types and nullability."""
    import pyarrow as pa

    from txnctl.spark.bytes_column import as_text

    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            # A file of an earlier release lacks the column, which no message had a value in.
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch[field.name]
        columns.append(
            column if column.type == field.type else as_text(column, field, "the messages of a file")
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema)
