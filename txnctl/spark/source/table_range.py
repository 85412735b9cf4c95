"""A partition of a table: the rows of a range of keys, as committed at reading time or as of a version."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from storage.errors import TableNotFound
from storage.txn.options import CheckMode
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.source.partition import StorePartition
from txnctl.spark.source.row_columns import record_batch

if TYPE_CHECKING:
    import pyarrow as pa

    from storage import Row, Table
    from storage.client.final_version import FinalVersion

BATCH_ROWS: Final = 10_000


@dataclass(frozen=True)
class TableRange(StorePartition):
    """Rows of keys from `start` (included) to `end` (excluded; None for the end of the table).

    Attributes:
        table_id: the id at planning time; another id means that the table was deleted and created again.
        as_of: the version that all partitions read; None for rows as committed at reading time.
        keys: the keys that are read, each by itself, in order; None for the whole range.
    """

    table: str
    table_id: int
    start: bytes
    end: bytes | None
    check: CheckMode
    as_of: FinalVersion | int | None
    keys: tuple[bytes, ...] | None = None

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the rows as Arrow batches of this schema.

        Raises:
            StoreNotFound, StoreInvalid, TableNotFound: store or table differs from the planned one.
            RequestTooOld: versions at `as_of` have been collected.
        """
        with hints_as_notes(), self.local_store.open_read_only() as store:
            table = store.table(self.table)
            if table.table_id != self.table_id:
                raise TableNotFound(
                    f"table {self.table} was deleted and created again meanwhile",
                    hint="Run the read again.",
                    table=self.table,
                )
            rows = self._rows(table)
            while page := list(islice(rows, BATCH_ROWS)):
                yield record_batch(page, schema)

    def _rows(self, table: Table) -> Iterator[Row]:
        check = self.check if self.as_of is None else None
        if self.keys is None:
            return table.scan(start=self.start, end=self.end, at=self.as_of, check=check)
        looked_up = (table.get_row(key, at=self.as_of, check=check) for key in self.keys)
        return (row for row in looked_up if row is not None)
