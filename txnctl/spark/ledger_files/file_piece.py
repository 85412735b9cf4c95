"""A partition that is row groups of a Parquet file: all that a task on another machine needs. Knows no store.

It names the file, the row groups, the bounds where the file reaches beyond them, and whether messages of aborted
transactions are left out. What the file says of a transaction was decided when it was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from txnctl.spark.ledger_files.root import Root, open_file
from txnctl.spark.runtime.explained import explained
from txnctl.spark.source.partition import Partition

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which messages are meant where a file reaches beyond them.

    Attributes:
        after, through: the first position is not read, the second is the last one read.
        first_index: in the first entry, the batch index to begin at.
        stop_index: in the entry at `through`, the batch index to stop before; None for all of it.
    """

    after: tuple[int, int]
    through: tuple[int, int]
    first_index: int = 0
    stop_index: int | None = None

    def chosen(self, batch: pa.RecordBatch) -> Any:
        """Which rows are meant, as booleans."""
        import pyarrow.compute as pc

        ledger, entry = batch["ledgerId"], batch["entryId"]

        def is_at(position: tuple[int, int]) -> Any:
            return pc.and_(pc.equal(ledger, position[0]), pc.equal(entry, position[1]))

        (low, low_entry), (high, high_entry) = self.after, self.through
        is_after = pc.or_(
            pc.greater(ledger, low), pc.and_(pc.equal(ledger, low), pc.greater(entry, low_entry))
        )
        is_before = pc.or_(
            pc.less(ledger, high), pc.and_(pc.equal(ledger, high), pc.less_equal(entry, high_entry))
        )
        chosen = pc.and_(is_after, is_before)
        if self.first_index:
            is_earlier = pc.less(batch["batchIndex"], self.first_index)
            chosen = pc.and_not(chosen, pc.and_(is_at((low, low_entry + 1)), is_earlier))
        if self.stop_index is not None:
            is_later = pc.greater_equal(batch["batchIndex"], self.stop_index)
            chosen = pc.and_not(chosen, pc.and_(is_at((high, high_entry)), is_later))
        return chosen


@dataclass(frozen=True)
class FilePiece(Partition):
    """Some row groups of a file.

    Attributes:
        path: of the file under the root.
        groups: the first row group, and the one after the last.
        bounds: None where all messages of the file are meant.
        is_committed: whether messages of aborted transactions are left out.
    """

    root: Root
    path: str
    groups: tuple[int, int]
    bounds: Bounds | None
    is_committed: bool

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches of exactly this schema.

        Raises:
            OffloadInvalid: the file is not there.
        """
        import pyarrow.parquet as pq

        with explained(), open_file(self.root, self.path) as source:
            file = pq.ParquetFile(source, pre_buffer=True)
            groups = [each for each in range(*self.groups) if self._touches(file.metadata.row_group(each))]
            if not groups:
                return
            columns = list(dict.fromkeys([*schema.names, *self._looked_at()]))
            for batch in file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns):
                chosen = self._chosen(batch)
                if chosen.num_rows:
                    yield _conforming(chosen, schema)

    def _looked_at(self) -> list[str]:
        """The columns that say which rows are meant."""
        positions = [] if self.bounds is None else ["ledgerId", "entryId", "batchIndex"]
        return [*positions, "txnState"] if self.is_committed else positions

    def _touches(self, group: Any) -> bool:
        """Whether a row group may hold messages within the bounds, by its statistics."""
        if self.bounds is None:
            return True
        after, through = self.bounds.after, self.bounds.through
        known = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
        ledger, entry = known["ledgerId"], known["entryId"]
        if ledger.min == ledger.max:
            return (ledger.max, entry.max) > after and (ledger.min, entry.min) <= through
        return bool(ledger.max >= after[0] and ledger.min <= through[0])

    def _chosen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are meant."""
        import pyarrow.compute as pc

        if self.bounds is not None:
            batch = batch.filter(self.bounds.chosen(batch))
        if self.is_committed:
            batch = batch.filter(pc.not_equal(pc.coalesce(batch["txnState"], ""), "ABORTED"))
        return batch


def _conforming(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns of the schema: their order, types and nullability."""
    import pyarrow as pa

    from txnctl.spark.bytes_column import as_text

    columns = []
    for field in schema:
        column = batch[field.name]
        columns.append(
            column if column.type == field.type else as_text(column, field, "the messages of a file")
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema)
