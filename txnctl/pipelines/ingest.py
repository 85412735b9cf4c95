"""Files -> a topic, all or nothing: CSV, lines of JSON and Parquet as messages.

A row becomes a message whose value is the row as JSON, or one of its columns. A row that cannot be one has a `problem`;
it ends the job, so that nothing is stored, or is left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from storage.errors import InvalidValue
from txnctl.pipelines import files
from txnctl.spark.runtime.job_errors import BAD_ROW, BadRow, told_as_ours

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MESSAGE = ("key", "value", "eventTime")
"""What `transform` gives, beside `file`, `row`, `record` and `problem`."""

_RECORD = "_txnctl_record"
_PLACE = ("_txnctl_file", "_txnctl_row")
_RECORD_MAX = 200


@dataclass(frozen=True)
class Columns:
    """Which columns of the input are what: the value (None: the whole row as JSON), the key, the event time."""

    value: str | None = None
    key: str | None = None
    event_time: str | None = None

    def named(self) -> list[str]:
        """Those that are named, each once."""
        return list(dict.fromkeys(filter(None, (self.value, self.key, self.event_time))))


@dataclass(frozen=True)
class Ingested:
    """How many rows became messages, and how many were left out."""

    messages: int
    skipped: int


def transform(rows: DataFrame, columns: Columns) -> DataFrame:
    """Rows as messages, and what is wrong with those that are none.

    Args:
        rows: as `read` gives them: the columns of the file and three of ours about each row's place.

    Raises:
        InvalidValue: a column that is named is not there.
    """
    from pyspark.sql import functions as f

    names = [name for name in rows.columns if name not in (*_PLACE, _RECORD)]
    for name in columns.named():
        if name not in names:
            raise InvalidValue(
                f"there is no column {name}", hint=f"The columns are {', '.join(names)}.", column=name
            )
    whole = f.to_json(f.struct(*map(_column, names)), {"ignoreNullFields": "false"}).cast("binary")
    return rows.select(
        _bytes(rows, columns.key).alias("key"),
        (whole if columns.value is None else _bytes(rows, columns.value)).alias("value"),
        _event_time(columns.event_time).alias("eventTime"),
        f.col(_PLACE[0]).alias("file"),
        f.col(_PLACE[1]).alias("row"),
        f.substring(_RECORD, 1, _RECORD_MAX).alias("record") if _RECORD in rows.columns else _none("record"),
        _problem(rows, columns).alias("problem"),
    )


def from_lines(lines: DataFrame, columns: Columns) -> DataFrame:
    """The same for lines of JSON, whose objects stay as they are written, to the last digit.

    Args:
        lines: `value`, and the place of each.
    """
    from pyspark.sql import functions as f

    is_object = f.schema_of_variant("parsed").startswith("OBJECT")
    held = lines.where(f.trim("value") != "").withColumn("parsed", f.try_parse_json("value"))

    def field(name: str | None) -> Column:
        return f.lit(None) if name is None else f.try_variant_get("parsed", _path(name), "string")

    problem = (
        f.when(f.col("parsed").isNull(), "it is not JSON")
        .when(~is_object, "it is no JSON object")
        .when(_unread(field(columns.event_time)), f"its {columns.event_time} is no time")
    )
    if columns.value is not None:
        problem = problem.when(field(columns.value).isNull(), f"it has no {columns.value}")
    return held.select(
        field(columns.key).cast("string").cast("binary").alias("key"),
        (f.col("value") if columns.value is None else field(columns.value)).cast("binary").alias("value"),
        _time(field(columns.event_time)).alias("eventTime"),
        f.col(_PLACE[0]).alias("file"),
        f.lit(None).cast("bigint").alias("row"),
        f.substring("value", 1, _RECORD_MAX).alias("record"),
        problem.alias("problem"),
    )


def read(spark: SparkSession, path: str, format_: str, columns: Columns, *, multi_line: bool) -> DataFrame:
    """A file, or all files of a directory or pattern, as messages.

    Raises:
        InvalidValue: nothing is there, or a column is missing.
    """
    from pyspark.sql import functions as f

    place = files.to_read(path)
    at = [f.col("_metadata.file_path").alias(_PLACE[0]), f.lit(None).cast("bigint").alias(_PLACE[1])]
    if format_ == "json":
        return from_lines(spark.read.text(place).select("value", *at), columns)
    if format_ == "parquet":
        rows = spark.read.parquet(place)
        row = (f.col("_metadata.row_index") + 1).alias(_PLACE[1])
        return transform(rows.select("*", at[0], row), columns)
    reading = spark.read.option("header", True).option("escape", '"').option("multiLine", multi_line)
    header = reading.csv(place).schema
    if not header.fields:
        raise InvalidValue(f"{path!r} holds nothing, not even a header", path=path)
    rows = (
        reading.schema(header.add(_RECORD, "string"))
        .option("enforceSchema", False)
        .option("columnNameOfCorruptRecord", _RECORD)
        .csv(place)
    )
    return transform(rows.select("*", *at), columns)


def run(
    spark: SparkSession,
    paths: list[str],
    options: dict[str, str],
    columns: Columns,
    *,
    format_: str | None = None,
    multi_line: bool = False,
    skip: bool = False,
) -> Ingested:
    """Store what all files hold in a topic, in one transaction.

    Files come one after the other in the order given, and so do the rows of each.

    Args:
        options: of `format("txnctl")`: path and topic at least.
        skip: leave out rows that cannot be messages; otherwise the first one ends the job.

    Raises:
        BadLine: names the row.
        TxnctlError
    """
    from pyspark.sql import Observation, functions as f

    with told_as_ours():
        parts = [
            read(spark, path, format_ or files.format_of(path), columns, multi_line=multi_line)
            for path in paths
        ]
        found = reduce(lambda one, other: one.unionByName(other), parts)
        is_bad = f.col("problem").isNotNull()
        counted = Observation("rows")
        found = found.observe(counted, f.count_if(~is_bad).alias("good"), f.count_if(is_bad).alias("bad"))
        rows = (
            found.where(~is_bad)
            if skip
            else found.withColumn("value", f.when(is_bad, _stop()).otherwise(f.col("value")))
        )
        try:
            with told_as_ours():
                rows.select(*MESSAGE).write.format("txnctl").mode("append").options(**options).save()
        except BadRow as error:
            raise _with_row(spark, error) from error
        return Ingested(counted.get["good"], counted.get["bad"])


def _with_row(spark: SparkSession, error: BadRow) -> BadRow:
    """The error with the number of the row in its file: the first that has this text."""
    from pyspark.sql import functions as f

    if error.row is not None or not error.record:
        return error
    lines = spark.read.text(files.to_read(error.file)).select(
        f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("id"),
        f.substring("value", 1, _RECORD_MAX).alias("record"),
    )
    first = lines.where(f.col("record") == error.record.split("\n")[0]).orderBy("block", "id").first()
    if first is None:
        return error
    before = (f.col("block") < first.block) | ((f.col("block") == first.block) & (f.col("id") <= first.id))
    return BadRow(error.file, lines.where(before).count(), None, error.problem)


def _problem(rows: DataFrame, columns: Columns) -> Column:
    from pyspark.sql import functions as f

    problem = f.when(f.lit(False), "")
    if _RECORD in rows.columns:
        problem = problem.when(f.col(_RECORD).isNotNull(), "it has not the columns of the header")
    if columns.value is not None:
        problem = problem.when(_column(columns.value).isNull(), f"its {columns.value} is empty")
    if columns.event_time is not None:
        problem = problem.when(
            _unread(_column(columns.event_time).cast("string")), f"its {columns.event_time} is no time"
        )
    return problem


def _stop() -> Column:
    from pyspark.sql import functions as f

    row = f.to_json(f.struct("file", "row", "record", "problem"))
    return f.raise_error(f.concat(f.lit(BAD_ROW), row)).cast("binary")


def _bytes(rows: DataFrame, name: str | None) -> Column:
    """A column as bytes: as they are, or the text of anything else."""
    if name is None:
        return _none("key").cast("binary")
    is_binary = rows.schema[name].dataType.simpleString() == "binary"
    return _column(name) if is_binary else _column(name).cast("string").cast("binary")


def _event_time(name: str | None) -> Column:
    return _time(_none("time") if name is None else _column(name).cast("string"))


def _time(text: Column) -> Column:
    """Milliseconds since 1970, or a date, or RFC 3339, as a timestamp; null where it is none of these."""
    from pyspark.sql import functions as f

    return f.coalesce(f.timestamp_millis(text.try_cast("bigint")), text.try_cast("timestamp"))


def _unread(text: Column) -> Column:
    return text.isNotNull() & (text != "") & _time(text).isNull()


def _column(name: str) -> Column:
    """A column by its very name, dots and all."""
    from pyspark.sql import functions as f

    return f.col("`" + name.replace("`", "``") + "`")


def _path(name: str) -> str:
    """The place of a field in an object."""
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"$['{escaped}']"


def _none(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.lit(None).cast("string").alias(name)
