"""Files as a data source of Spark, for the ingest job: each partition has some parts of files, whose rows are messages.

Spark imports this module in the driver and in Python processes of its own, so no heavy module is imported at the top.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from txnctl.files.input_parts import InputOptions, InputPart
    from txnctl.files.message_rows import FileMessage, MessageColumns

_SCHEMA: Final = "key binary, value binary, eventTime timestamp, problem string"
_BATCH_ROWS: Final = 8192
_BATCH_BYTES: Final = 16 << 20
_PARTS_MAX: Final = 1000
"""Parts of a partition: each file is opened for itself."""


@dataclass(frozen=True)
class FileParts(InputPartition):
    """Parts of files that one task reads, in order."""

    parts: Sequence[InputPart]


class FileSource(DataSource):
    """The rows of files as messages. The option `plan` is the JSON of `frame`."""

    @classmethod
    def name(cls) -> str:
        return "txnctl-files"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  the protocol of Spark
        return _Reader(**json.loads(self.options["plan"]))


class _Reader(DataSourceReader):
    def __init__(self, parts: list[list[Any]], columns: list[str | None], options: list[Any]) -> None:
        from txnctl.files.csv_rows import CsvDialect, CsvHeader
        from txnctl.files.input_parts import InputOptions, InputPart
        from txnctl.files.message_rows import MessageColumns

        self._parts = [
            InputPart(*part)._replace(header=None if part[-1] is None else CsvHeader(*part[-1]))
            for part in parts
        ]
        self._columns = MessageColumns(*columns)
        self._options = replace(InputOptions(*options), dialect=CsvDialect(*options[-1]))

    def partitions(self) -> Sequence[InputPartition]:
        return [FileParts(parts) for parts in gathered(self._parts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from txnctl.files import input_parts
        from txnctl.spark.runtime.hints import hints_as_notes

        assert isinstance(partition, FileParts), "the partitions are of this reader"
        with hints_as_notes():
            rows = (
                row
                for part in partition.parts
                for row in input_parts.read(part, self._columns, self._options)
            )
            yield from _batches(rows)


def frame(
    spark: SparkSession, parts: Sequence[InputPart], columns: MessageColumns, options: InputOptions
) -> DataFrame:
    """The messages of parts of files, in order: `key`, `value`, `eventTime`, or the `problem` of a row that is none."""
    plan = {
        "parts": parts,
        "columns": [columns.value, columns.key, columns.event_time],
        "options": [options.format_, options.multi_line, options.skip, options.dialect],
    }
    spark.dataSource.register(FileSource)
    return spark.read.format(FileSource.name()).schema(_SCHEMA).option("plan", json.dumps(plan)).load()


def gathered(parts: Sequence[InputPart]) -> list[list[InputPart]]:
    """Parts of files for each task, in order: small files share one."""
    from txnctl.files.input_parts import PART_BYTES

    tasks: list[list[InputPart]] = []
    room = 0
    for part in parts:
        if not tasks or part.size > room or len(tasks[-1]) >= _PARTS_MAX:
            tasks.append([])
            room = PART_BYTES
        tasks[-1].append(part)
        room -= part.size
    return tasks


def _batches(rows: Iterator[FileMessage]) -> Iterator[pa.RecordBatch]:
    taken: list[FileMessage] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += len(row.value or b"")
        if len(taken) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield _batch(taken)
            taken, size = [], 0
    if taken:
        yield _batch(taken)


def _batch(rows: list[FileMessage]) -> pa.RecordBatch:
    import pyarrow as pa

    times = [None if row.event_time_ms is None else row.event_time_ms * 1000 for row in rows]
    arrays = [
        pa.array([row.key for row in rows], pa.binary()),
        pa.array([row.value for row in rows], pa.binary()),
        pa.array(times, pa.timestamp("us", "UTC")),
        pa.array([row.problem for row in rows], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, ["key", "value", "eventTime", "problem"])
