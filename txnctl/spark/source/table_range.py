"""A partition of a table: the rows of a range of keys, as committed when they are read, or as of a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from storage.errors import TableNotFound
from storage.txn.options import CheckMode
from txnctl.spark.runtime.explained import explained
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.partition import Partition
from txnctl.spark.source.row_columns import record_batch

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS: Final = 10_000


@dataclass(frozen=True)
class TableRange(Partition):
    """Rows from one key on, below another (None: to the end).

    Attributes:
        table_id: another one means that the table was deleted and created again.
        as_of: a version, in nanoseconds since 1970; None for what is committed when it is read.
    """

    place: LocalStore
    table: str
    table_id: int
    start: bytes
    end: bytes | None
    check: CheckMode
    as_of: int | None

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches of this schema.

        Raises:
            StoreNotFound, StoreInvalid, TableNotFound: they are not those on which the read was planned.
            RequestTooOld: what was committed at `as_of` is not kept any more.
        """
        with explained(), self.place.opened() as store:
            table = store.table(self.table)
            if table.table_id != self.table_id:
                raise TableNotFound(
                    f"table {self.table} was deleted and created again meanwhile",
                    hint="Read it anew.",
                    table=self.table,
                )
            check = self.check if self.as_of is None else None
            rows = table.scan(start=self.start, end=self.end, at=self.as_of, check=check)
            while page := list(islice(rows, BATCH_ROWS)):
                yield record_batch(page, schema)
