"""Planning a read of a table from files: its rows are written now, as they are asked for, for this plan alone.

A table changes, so there is nothing to keep for the next plan; what was written is collected by its age.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from txnctl.spark import schemas
from txnctl.spark.ledger_files import upkeep
from txnctl.spark.ledger_files.directory import Directory, Sink
from txnctl.spark.ledger_files.file_piece import FilePiece
from txnctl.spark.ledger_files.layout import SNAPSHOTS, token
from txnctl.spark.ledger_files.range_export import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from txnctl.spark.ledger_files.root import Root

if TYPE_CHECKING:
    from txnctl.spark.source.table_range import TableRange


def snapshot_pieces(ranges: Sequence[TableRange], place: str, now_ms: int) -> list[FilePiece]:
    """The same rows, read from files instead of the store; a partition for each range that has rows.

    Args:
        place: where the files lie, as the option offloadPath gives it.
        now_ms: snapshots that are a day older than this are removed.

    Raises:
        TableNotFound, RequestTooOld, InvalidValue, OffloadInvalid
    """
    root = Root.of(place)
    first = ranges[0]
    directory = Directory(root, f"{first.place.identity}/table-{first.table_id}")
    directory.make(SNAPSHOTS)
    upkeep.collect_snapshots(directory, now_ms - upkeep.KEEP_MS)
    pieces = []
    for number, each in enumerate(ranges):
        name = f"{number}-{token()}.parquet"
        with directory.writing(SNAPSHOTS, name) as sink:
            groups = _write(each, sink)
        if groups:
            pieces.append(FilePiece(root, f"{directory.path}/{SNAPSHOTS}/{name}", (0, groups), None, False))
        else:
            directory.remove(SNAPSHOTS, name)
    return pieces


def _write(wanted: TableRange, sink: Sink) -> int:
    """Write the rows of a range; how many row groups that came to."""
    schema = schemas.arrow_columns(schemas.ROW_TYPES)
    groups = 0
    with pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        compression="zstd",
        use_dictionary=False,
        write_statistics=["key"],
    ) as writer:
        for batches in _grouped(wanted.batches(schema)):
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
