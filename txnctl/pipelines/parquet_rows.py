"""Rows of Parquet files for the ingest job: timestamps of nanoseconds, which Spark does not have, become text."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from txnctl.pipelines import files
from txnctl.spark.file_systems import open_file_system

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def read(spark: SparkSession, path: str) -> DataFrame:
    """Read a file, or all files of a directory or pattern.

    Columns of nanoseconds are RFC 3339 with nine digits, without a zone where the file has none. The setting
    `session_settings.NANOSECONDS_AS_NUMBERS` must hold as long as the rows are used.

    Raises:
        InvalidValue: no such file.
    """
    rows = spark.read.parquet(files.uri_to_read(path))
    numbers = {field.name for field in rows.schema.fields if field.dataType.simpleString() == "bigint"}
    zones = _nanosecond_columns(path) if numbers else {}
    for name in numbers & zones.keys():
        quoted = "`" + name.replace("`", "``") + "`"
        rows = rows.withColumn(name, _text(quoted, "Z" if zones[name] else ""))
    return rows


def _nanosecond_columns(path: str) -> dict[str, bool]:
    """The columns of nanoseconds in the first file, and whether each is in UTC; none if PyArrow cannot read it."""
    from pyarrow import ArrowException, parquet, types

    with suppress(ArrowException, OSError, ValueError):
        first = files.input_files(path)[0]
        system, place = open_file_system(first)
        schema = parquet.read_schema(place, filesystem=system)
        return {
            field.name: field.type.tz is not None
            for field in schema
            if types.is_timestamp(field.type) and field.type.unit == "ns"
        }
    return {}


def _text(column: str, zone: str) -> Column:
    """The text of a number of nanoseconds since 1970: `2024-05-01T10:00:00.123456789Z`."""
    from pyspark.sql import functions as f

    # A timestamp without a zone has the same text in sessions of every zone.
    second = f.expr(
        f"timestampadd(SECOND, floor({column} / 1000000000BD), timestamp_ntz'1970-01-01 00:00:00')"
    ).cast("string")
    fraction = f.expr(f"lpad(cast(pmod({column}, 1000000000L) as string), 9, '0')")
    return f.concat(f.regexp_replace(second, " ", "T"), f.lit("."), fraction, f.lit(zone))
