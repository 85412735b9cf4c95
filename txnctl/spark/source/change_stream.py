"""Streaming reads of the changes of a table: micro-batches between versions.

A micro-batch ends at a final version, below the begins of all open transactions: its changes never change, and the
changes of one transaction, which have one version, are in one batch. The offset is the last version that was read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from storage.errors import InvalidPosition, RequestTooOld
from txnctl.spark import schemas
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.source.change_range import kept_changes, same_table
from txnctl.spark.source.change_reader import ranges
from txnctl.spark.source.partition import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage import Store, Table
    from txnctl.spark.change_options import ChangeOptions

Offset = dict[str, str | int]


class ChangeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of `spark.readStream` for the changes of a table."""

    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schemas.arrow_schema(schema, schemas.CHANGE_TYPES)
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Return the start of a new query: `since`, or the oldest version from which changes are kept."""
        with hints_as_notes(), self._open() as store:
            table = store.table(self._options.table)
            changes = kept_changes(table, self._options.since, None, fails=self._options.fail_on_data_loss)
            return self._offset(table, changes.since)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one micro-batch by the options."""
        limit = self._options.max_changes
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: Mapping[str, object], limit: ReadLimit) -> Offset:  # noqa: N802
        """Return the end of the next micro-batch; `start` where the table has no further changes."""
        with hints_as_notes(), self._open() as store:
            table, since = self._table_at(store, start)
            if self._target is not None and self._target <= since:
                return self._offset(table, since)
            changes = kept_changes(table, since, self._target, fails=self._options.fail_on_data_loss)
            if isinstance(limit, ReadMaxRows):
                return self._offset(table, changes.whole_until(limit.max_rows))
            return self._offset(table, changes.until if changes.has_any() else changes.since)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the newest final version: the query stops there."""
        with hints_as_notes(), self._open() as store:
            self._target = store.table(self._options.table).version_at().version

    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Return `latestOffset` of the query's progress: the newest version that can be read."""
        with hints_as_notes(), self._open() as store:
            table = store.table(self._options.table)
            return self._offset(table, table.version_at().version)

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        """Plan the ranges between two offsets."""
        with hints_as_notes(), self._open() as store:
            table, since = self._table_at(store, start)
            _, until = self._table_at(store, end)
            changes = kept_changes(table, since, until, fails=self._options.fail_on_data_loss)
            return list(ranges(store, table, changes, replace(self._options, until=until)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)

    def commit(self, end: Mapping[str, object]) -> None:
        """Nothing is kept in the store: the checkpoint has the position."""

    def stop(self) -> None:
        """Nothing is open between the calls."""

    def _open(self) -> Store:
        from storage import Store

        return Store.open(self._options.path, read_only=True, program="Spark")

    def _offset(self, table: Table, version: int) -> Offset:
        return {"table": table.name, "tableId": table.table_id, "version": version}

    def _table_at(self, store: Store, offset: Mapping[str, object]) -> tuple[Table, int]:
        """The table and the version of an offset. Spark does not check the contents of a checkpoint.

        Raises:
            InvalidPosition: the offset is not of this stream.
            TableNotFound: the table was deleted, or created again.
            RequestTooOld: the store has not come to the version: it is an older copy.
        """
        name, table_id, version = (offset.get(part) for part in ("table", "tableId", "version"))
        if name != self._options.table or type(table_id) is not int or type(version) is not int:
            raise InvalidPosition(
                f"the checkpoint has no version of table {self._options.table}: {offset}",
                hint="Give the query a checkpoint of its own.",
            )
        table = same_table(store, self._options.table, table_id)
        if version > table.version_at().version:
            raise RequestTooOld(
                f"table {table.name} ends before version {version} of the checkpoint: the store is an older copy",
                hint="Start the query with a new checkpoint.",
                table=table.name,
            )
        return table, version
