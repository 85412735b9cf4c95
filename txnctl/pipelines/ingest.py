"""The ingest job: CSV, lines of JSON and Parquet become messages of a topic, all or nothing.

A row becomes a message whose value is the row as JSON, or one of its columns. A row that cannot be a message has a
`problem`: the first such row ends the job and nothing is stored, or such rows are left out and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from storage.errors import InvalidValue
from txnctl.pipelines import csv_files, files, parquet_rows
from txnctl.pipelines.csv_files import LOCATION, PLAIN, PROBLEM, CsvDialect
from txnctl.pipelines.session_settings import NANOSECONDS_AS_NUMBERS, settings
from txnctl.spark.runtime.job_errors import BAD_ROW, BadRow, as_txnctl_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MESSAGE = ("key", "value", "eventTime")
"""The columns of `transform` for the sink, beside `file`, `row`, `unit`, `record` and `problem`."""

_RECORD_CHARS = 200
_REASONS_MAX = 20
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Rows as JSON keep the microseconds of timestamps; Spark's own formats cut them to milliseconds."""

_DATE = r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}($|[T\s])"
"""The beginning of a time that has a date; Spark takes one without a date for a time of today."""


@dataclass(frozen=True)
class MessageColumns:
    """The input columns for the value (None: the whole row as JSON), the key, the event time."""

    value: str | None = None
    key: str | None = None
    event_time: str | None = None

    def distinct_names(self) -> list[str]:
        """The given names, without duplicates."""
        return list(dict.fromkeys(filter(None, (self.value, self.key, self.event_time))))


@dataclass(frozen=True)
class InputOptions:
    """Options of the input files.

    Attributes:
        format_: one of `files.FORMATS`; None to go by the name of each file.
        multi_line: whether values of CSV may contain line breaks; then a file is one task.
        skip: leave out rows that cannot be messages; otherwise the first such row ends the job.
        dialect: the form of CSV files.
    """

    format_: str | None = None
    multi_line: bool = True
    skip: bool = False
    dialect: CsvDialect = PLAIN


class SkippedRows(NamedTuple):
    """How many rows were left out for one reason."""

    reason: str
    rows: int


@dataclass(frozen=True)
class Ingested:
    """The number of stored messages, and of rows left out; the most frequent reasons, each with its rows."""

    messages: int
    skipped: int
    reasons: tuple[SkippedRows, ...] = ()


def transform(rows: DataFrame, columns: MessageColumns) -> DataFrame:
    """Convert rows into messages; rows that cannot be a message get a problem.

    Args:
        rows: from `read_messages`: the columns of the file and the location of each row.

    Raises:
        InvalidValue: a given column is missing.
    """
    from pyspark.sql import functions as f

    names = [name for name in rows.columns if name not in (*LOCATION, *PROBLEM)]
    for name in columns.distinct_names():
        if name not in names:
            raise InvalidValue(
                f"there is no column {name}", hint=f"The columns are {', '.join(names)}.", column=name
            )
    whole = f.to_json(f.struct(*map(_column, names)), _JSON).cast("binary")
    return rows.select(
        _bytes(rows, columns.key).alias("key"),
        (whole if columns.value is None else _bytes(rows, columns.value)).alias("value"),
        _event_time(rows, columns.event_time).alias("eventTime"),
        f.col(LOCATION[0]).alias("file"),
        f.col(LOCATION[1]).alias("row"),
        f.lit("line" if PROBLEM[0] in rows.columns else "row").alias("unit"),
        f.col(PROBLEM[0]).alias("record") if PROBLEM[0] in rows.columns else _none("record"),
        _problem(rows, columns).alias("problem"),
    )


def transform_lines(lines: DataFrame, columns: MessageColumns) -> DataFrame:
    """Convert lines of JSON into messages; an object stays as written, to the last digit.

    Args:
        lines: `value`, and the location of each line.
    """
    from pyspark.sql import functions as f

    is_object = f.schema_of_variant("parsed").startswith("OBJECT")
    parsed = lines.where(f.trim("value") != "").withColumn("parsed", f.try_parse_json("value"))

    def field(name: str | None) -> Column:
        return f.lit(None) if name is None else f.try_variant_get("parsed", _path(name), "string")

    problem = (
        f.when(~f.is_valid_utf8("value"), "not UTF-8 text")
        .when(f.col("parsed").isNull(), "not JSON")
        .when(~is_object, "not a JSON object")
        .when(_is_not_a_time(field(columns.event_time)), f"{columns.event_time} is not a time")
    )
    if columns.value is not None:
        problem = problem.when(field(columns.value).isNull(), f"no field {columns.value}")
    return parsed.select(
        field(columns.key).cast("string").cast("binary").alias("key"),
        (f.col("value") if columns.value is None else field(columns.value)).cast("binary").alias("value"),
        _time(field(columns.event_time)).alias("eventTime"),
        f.col(LOCATION[0]).alias("file"),
        f.lit(None).cast("bigint").alias("row"),
        f.lit("line").alias("unit"),
        _beginning("value").alias("record"),
        problem.alias("problem"),
    )


def read_messages(
    spark: SparkSession, path: str, format_: str, columns: MessageColumns, input_options: InputOptions
) -> DataFrame:
    """Read a file, or all files of a directory or pattern, as messages.

    Raises:
        InvalidValue: no file, or a column is missing.
        BadLine: a header that cannot be read.
    """
    from pyspark.sql import functions as f

    if format_ == "csv":
        return transform(_csv_rows(spark, path, input_options), columns)
    uri = files.uri_to_read(path)
    location = [
        f.col("_metadata.file_path").alias(LOCATION[0]),
        f.lit(None).cast("bigint").alias(LOCATION[1]),
    ]
    if format_ == "json":
        return transform_lines(_lines(spark, uri).select("value", *location), columns)
    rows = parquet_rows.read(spark, path)
    row = (f.col("_metadata.row_index") + 1).alias(LOCATION[1])
    return transform(rows.select("*", location[0], row), columns)


def _csv_rows(spark: SparkSession, path: str, input_options: InputOptions) -> DataFrame:
    """The rows of CSV files, whose columns are texts."""
    from txnctl.pipelines import csv_source

    names, dialect = files.input_files(path), input_options.dialect
    headers = [csv_files.read_header(name, dialect) for name in names]
    if not input_options.multi_line:
        csv_files.check_cut(dialect)
    sizes = [
        None if input_options.multi_line or files.is_compressed(name) else files.size_of(name)
        for name in names
    ]
    columns = csv_files.same_columns(names, headers)
    return csv_source.frame(spark, list(zip(names, headers, strict=True)), columns, dialect, sizes)


def ingest_files(
    spark: SparkSession,
    paths: Sequence[str],
    write_options: Mapping[str, str],
    columns: MessageColumns,
    input_options: InputOptions | None = None,
) -> Ingested:
    """Store all rows of the files in a topic, in one transaction.

    Files follow each other in the given order, each in the order of its rows.

    Args:
        write_options: of `format("txnctl")`: path and topic at least.

    Raises:
        BadLine: names the row.
        TxnctlError
    """
    from pyspark.sql import Observation, functions as f

    input_options = input_options or InputOptions()
    with as_txnctl_errors(), settings(spark, NANOSECONDS_AS_NUMBERS):
        frames = [
            read_messages(
                spark,
                path,
                input_options.format_ or files.format_of(path),
                columns,
                input_options,
            )
            for path in paths
        ]
        messages = reduce(lambda frame, more: frame.unionByName(more), frames)
        is_bad = f.col("problem").isNotNull()
        observation = Observation("rows")
        messages = messages.observe(
            observation,
            f.count_if(~is_bad).alias("good"),
            f.count_if(is_bad).alias("bad"),
            f.expr(f"approx_top_k(problem, {_REASONS_MAX})").alias("problems"),
        )
        rows = (
            messages.where(~is_bad)
            if input_options.skip
            else messages.withColumn("value", f.when(is_bad, _stop()).otherwise(f.col("value")))
        )
        try:
            with as_txnctl_errors():
                rows.select(*MESSAGE).write.format("txnctl").mode("append").options(**write_options).save()
        except BadRow as error:
            raise _with_row(spark, error) from error
        counts = observation.get
        reasons = [
            (item["item"], item["count"]) for item in counts["problems"] or () if item["item"] is not None
        ]
        return Ingested(counts["good"], counts["bad"], tuple(map(SkippedRows._make, reasons)))


def _lines(spark: SparkSession, uri: str) -> DataFrame:
    """The lines of a text file as `value`: a line ends with LF, a CR before LF belongs to the end, as in `produce`."""
    from pyspark.sql import functions as f

    # Without the option Spark ends a line at every CR, which is white space in JSON.
    lines = spark.read.option("lineSep", "\n").text(uri)
    # Bytes that are no text stay as they are read, to be refused: a replacement would make them U+FFFD.
    ended = f.when(f.is_valid_utf8("value"), f.regexp_replace("value", "\r\\z", "")).otherwise(f.col("value"))
    return lines.withColumn("value", ended)


def _beginning(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.substring(f.make_valid_utf8(name), 1, _RECORD_CHARS)


def _with_row(spark: SparkSession, error: BadRow) -> BadRow:
    """Return the error with the number of the row in its file: the first row with this text."""
    from pyspark.sql import functions as f

    if error.row is not None or not error.record:
        return error
    lines = _lines(spark, files.uri_to_read(error.file)).select(
        f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("id"),
        _beginning("value").alias("record"),
    )
    first = lines.where(f.col("record") == error.record.split("\n")[0]).orderBy("block", "id").first()
    if first is None:
        return error
    before = (f.col("block") < first.block) | ((f.col("block") == first.block) & (f.col("id") <= first.id))
    return BadRow(error.file, lines.where(before).count(), None, error.problem, error.unit)


def _problem(rows: DataFrame, columns: MessageColumns) -> Column:
    from pyspark.sql import functions as f

    problem = f.when(f.lit(False), "")
    if PROBLEM[1] in rows.columns:
        problem = problem.when(f.col(PROBLEM[1]).isNotNull(), f.col(PROBLEM[1]))
    if columns.value is not None:
        problem = problem.when(_column(columns.value).isNull(), f"{columns.value} is empty")
    if columns.event_time is not None:
        problem = problem.when(
            _is_not_a_time(_column(columns.event_time).cast("string")), f"{columns.event_time} is not a time"
        )
    return problem


def _stop() -> Column:
    from pyspark.sql import functions as f

    row = f.to_json(f.struct("file", "row", "unit", "record", "problem"))
    return f.raise_error(f.concat(f.lit(BAD_ROW), row)).cast("binary")


def _bytes(rows: DataFrame, name: str | None) -> Column:
    """Return a column as bytes: binary unchanged, other types as text."""
    if name is None:
        return _none("key").cast("binary")
    is_binary = rows.schema[name].dataType.simpleString() == "binary"
    return _column(name) if is_binary else _column(name).cast("string").cast("binary")


def _event_time(rows: DataFrame, name: str | None) -> Column:
    if name is None:
        return _time(_none("time"))
    is_time = rows.schema[name].dataType.simpleString() == "timestamp"
    return _column(name) if is_time else _time(_column(name).cast("string"))


def _time(text: Column) -> Column:
    """Parse milliseconds since 1970, a date, or RFC 3339 into a timestamp; null for other text."""
    from pyspark.sql import functions as f

    return f.coalesce(
        f.timestamp_millis(text.try_cast("bigint")), f.when(text.rlike(_DATE), text.try_cast("timestamp"))
    )


def _is_not_a_time(text: Column) -> Column:
    return text.isNotNull() & (text != "") & _time(text).isNull()


def _column(name: str) -> Column:
    """Return a column by its exact name, dots included."""
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")


def _path(name: str) -> str:
    """Return the JSON path of a field of an object."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"$['{escaped}']"


def _none(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.lit(None).cast("string").alias(name)
