"""Reading a table: in ranges of keys side by side, as committed now or as of a time.

Without `asOf` each page is as committed when it is read: rows that change meanwhile may be of different commits, as in
every read-committed scan. With `asOf` all partitions show one moment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage.json_form import to_json
from txnctl.spark import schemas
from txnctl.spark.runtime.explained import explained
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.partition import Partition, batches
from txnctl.spark.source.table_range import TableRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from txnctl.spark.options import TableRead

RANGE_ROWS: Final = 500_000
"""A partition reads about so many rows, unless more partitions are asked for."""

SLOT_ROWS: Final = 25_000
"""What has fewer rows is not worth a task of its own, even if a processor is idle."""


class TableReader(DataSourceReader):
    """See the module."""

    def __init__(self, wanted: TableRead, schema: StructType) -> None:
        self._wanted = wanted
        self._schema = schemas.arrow_schema(schema, schemas.ROW_TYPES)

    def partitions(self) -> list[InputPartition]:
        """Ranges of keys that cover the table.

        Raises:
            StoreNotFound, TableNotFound
        """
        with explained():
            return list(planned(self._wanted))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)


def planned(wanted: TableRead) -> Sequence[Partition]:
    """The partitions of a read of a table: ranges of keys, or files where tasks cannot open the store.

    Raises:
        StoreNotFound, TableNotFound, OffloadInvalid
    """
    from storage import Store

    with Store.open(wanted.path, read_only=True, program="Spark") as store:
        table, place = store.table(wanted.table), LocalStore.of(store)
        rows = to_json(table.stats())["rows"]
        by_size = max(-(-rows // RANGE_ROWS), min(os.cpu_count() or 1, -(-rows // SLOT_ROWS)))
        edges: list[bytes | None] = [b"", *table.split(max(by_size, wanted.minimum or 1)), None]
        ranges = [
            TableRange(place, table.name, table.table_id, start or b"", end, wanted.check, wanted.as_of)
            for start, end in pairwise(edges)
        ]
        if wanted.offload is None:
            return ranges
        from storage.process.clock import SYSTEM_CLOCK
        from txnctl.spark.ledger_files.table_plan import snapshot_pieces

        return snapshot_pieces(ranges, wanted.offload, SYSTEM_CLOCK.wall_ms())
