"""CSV files as a data source of Spark, for the ingest job: one partition a file, or ranges of files cut at line ends.

Spark imports this module in the driver and in Python processes of its own, so no heavy module is imported at the top.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from txnctl.pipelines.csv_files import LOCATION, PROBLEM, CsvDialect, CsvHeader, CsvRow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

RANGE_BYTES: Final = 64 << 20
"""Bytes of one partition of a file that is cut at line ends."""

_BATCH_ROWS: Final = 8192
_RECORD_CHARS: Final = 200


@dataclass(frozen=True)
class CsvRange(InputPartition):
    """A part of a file: the lines that begin from `start` on, below `end`; None for the whole file."""

    path: str
    header: CsvHeader
    dialect: CsvDialect
    start: int
    end: int | None


class CsvSource(DataSource):
    """The rows of CSV files. The option `plan` is the JSON of `frame`."""

    @classmethod
    def name(cls) -> str:
        return "txnctl-csv"

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(json.loads(self.options["plan"]), schema.fieldNames())


class _Reader(DataSourceReader):
    def __init__(self, plan: list[list[object]], names: Sequence[str]) -> None:
        self._plan = plan
        self._names = names[: -len(LOCATION) - len(PROBLEM)]

    def partitions(self) -> Sequence[InputPartition]:
        return [
            CsvRange(path, CsvHeader(*header), CsvDialect(*dialect), start, end)  # type: ignore[misc, arg-type]
            for path, header, dialect, start, end in self._plan
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from txnctl.pipelines.csv_files import read_lines, read_rows
        from txnctl.spark.runtime.hints import hints_as_notes

        assert isinstance(partition, CsvRange), "the partitions are of this reader"
        with hints_as_notes():
            rows = (
                ((row, None) for row in read_rows(partition.path, partition.header, partition.dialect))
                if partition.end is None
                else read_lines(
                    partition.path, partition.header, partition.dialect, partition.start, partition.end
                )
            )
            yield from _batches(rows, partition, self._names)


def frame(
    spark: SparkSession,
    files: Sequence[tuple[str, CsvHeader]],
    columns: Sequence[str],
    dialect: CsvDialect,
    sizes: Sequence[int | None],
) -> DataFrame:
    """The rows of files, in order, with `columns` and those of LOCATION and PROBLEM, all of them texts but the number.

    Args:
        sizes: bytes of each file that may be cut at line ends; None for a file that may not.
    """
    plan: list[tuple[str, CsvHeader, CsvDialect, int, int | None]] = []
    for (path, header), size in zip(files, sizes, strict=True):
        if size is None:
            plan.append((path, header, dialect, 0, None))
            continue
        starts = range(0, max(size, 1), RANGE_BYTES)
        plan += [(path, header, dialect, start, start + RANGE_BYTES) for start in starts]
    schema = ", ".join(f"`{name.replace('`', '``')}` string" for name in columns)
    schema += f", {LOCATION[0]} string, {LOCATION[1]} bigint, {PROBLEM[0]} string, {PROBLEM[1]} string"
    spark.dataSource.register(CsvSource)
    return spark.read.format(CsvSource.name()).schema(schema).option("plan", json.dumps(plan)).load()


def _batches(
    rows: Iterator[tuple[CsvRow, bytes | None]], part: CsvRange, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Arrow batches: the columns of the file in the asked order, then LOCATION and PROBLEM."""
    import pyarrow as pa

    places = [part.header.names.index(column) for column in columns]
    nothing: list[str | None] = [None] * len(part.header.names)
    while taken := list(islice(rows, _BATCH_ROWS)):
        fields = [row.fields or nothing for row, _ in taken]
        records = [
            None if record is None else record.decode("utf-8", "replace")[:_RECORD_CHARS]
            for _, record in taken
        ]
        arrays = [pa.array([row[place] for row in fields], pa.string()) for place in places]
        arrays += [
            pa.array([part.path] * len(taken), pa.string()),
            pa.array([row.number or None for row, _ in taken], pa.int64()),
            pa.array(records, pa.string()),
            pa.array([row.problem for row, _ in taken], pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(arrays, [*columns, *LOCATION, *PROBLEM])
