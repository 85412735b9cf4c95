"""Batch reads of the changes of a table: every version between two, cut into ranges that are read in parallel."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from txnctl.output.timestamp import NOW
from txnctl.spark import schemas
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.source.change_range import ChangeRange, kept_changes
from txnctl.spark.source.local_store import LocalStore
from txnctl.spark.source.partition import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage import Store, Table
    from storage.client.table_changes import TableChanges
    from txnctl.spark.change_options import ChangeOptions

RANGE_CHANGES: Final = 200_000
"""Changes of one partition, about, unless more partitions are requested."""

SLOT_CHANGES: Final = 10_000
"""Fewer changes are not worth a task of their own, even on an idle processor."""


class ChangeReader(DataSourceReader):
    """The reader of `spark.read` for the changes of a table."""

    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schemas.arrow_schema(schema, schemas.CHANGE_TYPES)

    def partitions(self) -> list[InputPartition]:
        """Return ranges of the changes, in order.

        Raises:
            StoreNotFound, TableNotFound, RequestTooOld
        """
        with hints_as_notes():
            return list(plan_changes(self._options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)


def plan_changes(options: ChangeOptions) -> list[ChangeRange]:
    """Plan the partitions of a batch read.

    Raises:
        StoreNotFound, TableNotFound, InvalidValue
        RequestTooOld: changes after `since` were removed.
    """
    from storage import Store

    with Store.open(options.path, read_only=True, program="Spark") as store:
        table = store.table(options.table)
        since = table.version_at().version if options.since == NOW else options.since
        changes = kept_changes(table, since, options.until, fails=options.fail_on_data_loss)
        return ranges(store, table, changes, options)


def ranges(store: Store, table: Table, changes: TableChanges, options: ChangeOptions) -> list[ChangeRange]:
    """Cut changes into ranges; none where there are no changes."""
    total = changes.count()
    if not total:
        return []
    by_size = max(-(-total // RANGE_CHANGES), min(os.cpu_count() or 1, -(-total // SLOT_CHANGES)))
    parts = max(by_size, options.min_partitions or 1)
    edges = [changes.first, *changes.split(-(-total // parts)), None]
    local_store = LocalStore.of_open_store(store)
    return [
        ChangeRange(
            local_store, table.name, table.table_id, start, end, changes.until, options.fail_on_data_loss
        )
        for start, end in pairwise(edges)
        if start is not None
    ]
