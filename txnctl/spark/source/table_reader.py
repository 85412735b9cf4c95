"""Batch reads of a table: ranges of keys read in parallel, as committed now or as of a time.

Without `asOf` each page is read as committed at reading time: rows that change meanwhile may come from several commits,
as in every read-committed scan. With `asOf` all partitions show the version that the plan finds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage.limits import TABLE_KEY_BYTES_MAX
from txnctl.output.timestamp import NOW
from txnctl.spark import schemas
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.runtime.shipped import Shipped
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.partition import Partition, batches, input_partitions
from txnctl.spark.source.table_range import TableRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from storage import Table
    from storage.client.final_version import FinalVersion
    from txnctl.spark.options import TableReadOptions

RANGE_ROWS: Final = 500_000
"""Rows of one partition, about, unless more partitions are requested."""

SLOT_ROWS: Final = 25_000
"""Fewer rows are not worth a task of their own, even on an idle processor."""


KEYS: Final = 10_000
"""Single keys of one partition."""


class TableReader(Shipped, DataSourceReader):
    """The reader of `spark.read` for a table."""

    def __init__(self, options: TableReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schemas.arrow_schema(schema, schemas.ROW_TYPES)

    def store_path(self) -> str:
        return self._options.path

    def partitions(self) -> list[InputPartition]:
        """Return ranges of keys that cover the table.

        Raises:
            StoreNotFound, TableNotFound
        """
        with hints_as_notes():
            return input_partitions(plan_partitions(self._options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)


class FilteringTableReader(TableReader):
    """The reader of a DataFrame that serves one query, with the filters of that query."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take filters on the key, and return the others."""
        from txnctl.spark.source.pushed_filters import select_rows

        keys, rest = select_rows(filters, self._options.keys)
        self._options = replace(self._options, keys=keys)
        return rest


def table_reader(options: TableReadOptions, schema: StructType) -> TableReader:
    """Return the reader for the options."""
    return (FilteringTableReader if options.pushes_filters else TableReader)(options, schema)


def plan_partitions(options: TableReadOptions) -> Sequence[Partition]:
    """Plan the partitions of a read of a table: ranges of keys, or files where tasks cannot open the store.

    Raises:
        StoreNotFound, TableNotFound, OffloadInvalid
        InvalidValue: asOf lies in the future.
        RequestTooOld: versions at asOf have been collected.
    """
    from storage import Store

    with Store.open(options.path, read_only=True, program="Spark") as store:
        table, local_store = store.table(options.table), LocalStore.of_open_store(store)
        as_of = options.as_of
        final = None if as_of is None else table.version_at(None if as_of == NOW else as_of)
        if final is not None:
            _check_kept(table, final)
        whole = TableRange(local_store, table.name, table.table_id, b"", None, options.check, final)
        ranges = _ranges(table, whole, options)
        if not ranges:
            return []
        if options.offload_path is None:
            return ranges
        from storage.process.clock import SYSTEM_CLOCK
        from txnctl.spark.ledger_files.table_plan import snapshot_partitions

        return snapshot_partitions(ranges, options.offload_path, SYSTEM_CLOCK.wall_ms())


def _check_kept(table: Table, final: FinalVersion) -> None:
    """Check that versions of that time are kept, before tasks start.

    Raises:
        RequestTooOld
    """
    table.get(b"\0", at=final)


def _ranges(table: Table, whole: TableRange, options: TableReadOptions) -> list[TableRange]:
    """Cut the selected keys into partitions: of single keys, or ranges of about equal length."""
    selected = options.keys
    if selected.is_empty:
        return []
    if selected.keys is not None:
        keys = sorted(key for key in selected.keys if 0 < len(key) <= TABLE_KEY_BYTES_MAX)
        step = max(1, min(KEYS, -(-len(keys) // (options.min_partitions or 1))))
        return [replace(whole, keys=tuple(keys[at : at + step])) for at in range(0, len(keys), step)]
    rows = table.stats().counts.rows
    by_size = max(-(-rows // RANGE_ROWS), min(os.cpu_count() or 1, -(-rows // SLOT_ROWS)))
    cuts = table.split(max(by_size, options.min_partitions or 1), start=selected.start, end=selected.end)
    edges: list[bytes | None] = [selected.start, *cuts, selected.end]
    return [replace(whole, start=start or b"", end=end) for start, end in pairwise(edges)]
