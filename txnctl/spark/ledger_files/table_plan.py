"""The plan of a read of a table from files: its rows are exported now, for this plan alone.

A table changes, so the next plan cannot reuse the files; old snapshots are collected by age.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from txnctl.spark import schemas
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.directory import Directory, HashingFile
from txnctl.spark.ledger_files.file_partition import FilePartition
from txnctl.spark.ledger_files.layout import SNAPSHOTS, token
from txnctl.spark.ledger_files.range_export import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from txnctl.spark.source.table_range import TableRange


def snapshot_partitions(ranges: Sequence[TableRange], offload_path: str, now_ms: int) -> list[FilePartition]:
    """Export the rows of the ranges, and plan a partition for each range with rows.

    Args:
        offload_path: the root of the files, as in the option offloadPath.
        now_ms: snapshots a day older than this are removed.

    Raises:
        TableNotFound, RequestTooOld, InvalidValue, OffloadInvalid
    """
    root = Root.of_path(offload_path)
    first = ranges[0]
    directory = Directory(root, f"{first.local_store.identity}/table-{first.table_id}")
    directory.make_directories(SNAPSHOTS)
    upkeep.collect_snapshots(directory, now_ms - upkeep.RETAIN_MS)
    partitions = []
    for number, table_range in enumerate(ranges):
        name = f"{number}-{token()}.parquet"
        with directory.writing(SNAPSHOTS, name) as sink:
            groups = _write(table_range, sink)
        if groups:
            partitions.append(
                FilePartition(root, f"{directory.path}/{SNAPSHOTS}/{name}", (0, groups), None, False)
            )
        else:
            directory.remove(SNAPSHOTS, name)
    return partitions


def _write(table_range: TableRange, sink: HashingFile) -> int:
    """Export the rows of a range; return the number of row groups."""
    schema = schemas.arrow_columns(schemas.ROW_TYPES)
    groups = 0
    with pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        compression="zstd",
        use_dictionary=False,
        write_statistics=["key"],
    ) as writer:
        for batches in _grouped(table_range.batches(schema)):
            table = pa.Table.from_batches(batches, schema)
            writer.write_table(table, row_group_size=len(table))
            groups += 1
    return groups


def _grouped(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group
