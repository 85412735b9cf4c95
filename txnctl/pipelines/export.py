"""A topic or a table -> files: Parquet as the columns are, CSV and JSON with bytes as text or Base64.

JSON lines of a topic have the fields of `consume -o ndjson`, those of a table the fields of `tables export`, so that
`produce --input ndjson` and `tables import` read them back.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from txnctl.pipelines import files
from txnctl.spark.runtime.job_errors import told_as_ours

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PARTIAL = ".partial"
_BYTES = ("key", "value")


def transform(rows: DataFrame, format_: str) -> DataFrame:
    """Messages, or rows of a table, as columns that the format can hold; for JSON the lines themselves as `value`."""
    if format_ == "parquet":
        return rows
    return json_lines(rows) if format_ == "json" else csv_columns(rows)


def csv_columns(rows: DataFrame) -> DataFrame:
    """Text in the column of its name, anything else as Base64 in a column beside; properties as JSON."""
    from pyspark.sql import functions as f

    columns: list[Column] = []
    for name in rows.columns:
        if name in _BYTES:
            columns += [_text(name).alias(name), _base64(name).alias(f"{name}Base64")]
        elif name == "properties":
            columns.append(f.to_json(name).alias(name))
        else:
            columns.append(f.col(name))
    return rows.select(*columns)


def json_lines(rows: DataFrame) -> DataFrame:
    """An object a row. Where bytes are text there is no Base64, and where they are not there is no text."""
    from pyspark.sql import functions as f

    others = (
        _message_fields()
        if "ledgerId" in rows.columns
        else [f.col("timestamp").cast("string").alias("version")]
    )
    id_, rest = (others[:1], others[1:]) if "ledgerId" in rows.columns else ([], others)

    def line(key: Column, value: Column) -> Column:
        return f.to_json(f.struct(*id_, value, key, *rest), {"ignoreNullFields": "false"})

    def fields(name: str) -> tuple[Column, Column]:
        return _text(name).alias(name), _base64(name).alias(f"{name}Base64")

    (key, key64), (value, value64) = fields("key"), fields("value")
    key_is_text, value_is_text = _is_text("key"), _is_text("value")
    return rows.select(
        f.when(key_is_text & value_is_text, line(key, value))
        .when(key_is_text, line(key, value64))
        .when(value_is_text, line(key64, value))
        .otherwise(line(key64, value64))
        .alias("value")
    )


def run(
    rows: DataFrame, destination: str, format_: str, *, overwrite: bool = False, parts: int | None = None
) -> int:
    """Write what is read from a topic or a table as files of a directory; how many rows.

    On this machine the directory appears when it is whole. Elsewhere `_SUCCESS` in it says so.

    Raises:
        AlreadyExists: the destination is there.
    """
    from pyspark.sql import Observation, functions as f

    if not overwrite:
        files.check_free(destination)
    counted = Observation("rows")
    with told_as_ours():
        found = transform(rows.observe(counted, f.count(f.lit(1)).alias("rows")), format_)
        if parts is not None:
            found = found.coalesce(parts)
        if files.is_uri(destination):
            _write(found, destination, format_, "overwrite" if overwrite else "errorifexists")
        else:
            _write_aside(found, destination, format_, overwrite=overwrite)
        return int(counted.get["rows"])


def _write_aside(frame: DataFrame, destination: str, format_: str, *, overwrite: bool) -> None:
    """Write beside the destination, and put it in its place when it is whole."""
    place = os.path.abspath(destination)
    partial = f"{place}{_PARTIAL}-{os.getpid()}"
    replaced = f"{partial}-replaced"
    try:
        _write(frame, files.to_write(partial), format_, "errorifexists")
        if not overwrite:
            # Somebody else may have put something there in the meantime.
            files.check_free(destination)
        elif os.path.lexists(place):
            os.rename(place, replaced)
        os.rename(partial, place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    _remove(replaced)


def _remove(place: str) -> None:
    """Remove what lies there, if anything does."""
    if os.path.isdir(place) and not os.path.islink(place):
        shutil.rmtree(place, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            os.unlink(place)


def _write(frame: DataFrame, place: str, format_: str, mode: str) -> None:
    writer = frame.write.mode(mode)
    if format_ == "parquet":
        writer.parquet(place)
    elif format_ == "json":
        writer.text(place)
    else:
        writer = writer.option("header", True).option("escape", '"').option("emptyValue", '""')
        for side in ("Leading", "Trailing"):
            writer = writer.option(f"ignore{side}WhiteSpace", False)
        writer.csv(place)


def read_topic(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """A topic; `options` are those of `format("txnctl")`."""
    with told_as_ours():
        return spark.read.format("txnctl").options(**options).load()


def _message_fields() -> list[Column]:
    """What a line of `consume -o ndjson` has besides key and value, as far as Spark is told of it."""
    from pyspark.sql import functions as f

    index = f.when(f.col("batchIndex") >= 0, f.col("batchIndex"))
    published = f.date_format("publishTime", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
    return [
        f.concat_ws(":", "ledgerId", "entryId", index).alias("messageId"),
        f.col("properties"),
        f.unix_millis("eventTime").alias("eventTimeMs"),
        published.alias("publishTimeAt"),
        f.unix_millis("publishTime").alias("publishTimeMs"),
        f.col("txnId"),
        f.col("txnState"),
    ]


def _is_text(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(name).isNull() | f.is_valid_utf8(f.col(name).cast("string"))


def _text(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.when(_is_text(name), f.col(name).cast("string"))


def _base64(name: str) -> Column:
    from pyspark.sql import functions as f

    return f.when(~_is_text(name), f.base64(name))
