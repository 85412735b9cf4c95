"""Files that jobs write: standard timestamps, and lines of JSON by their name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from txnctl.pipelines.session_settings import settings
from txnctl.pipelines.written_files import json_name, write_json_lines, write_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("part-0.txt", "part-0.json"),
        ("part-0.txt.gz", "part-0.json.gz"),
        (".part-0.txt.crc", ".part-0.json.crc"),
        ("_SUCCESS", "_SUCCESS"),
    ],
)
def test_names(name: str, named: str) -> None:
    """Of files, of compressed ones, and of Hadoop's checksums; the mark of a complete directory stays."""
    assert json_name(name) == named


@pytest.mark.needs_program("java")
@pytest.mark.parametrize("scheme", ["file://", "file:"])
def test_lines_of_json_are_named_so(spark: SparkSession, tmp_path: Path, scheme: str) -> None:
    """By Python on this machine, by Hadoop's file system elsewhere; read again by Spark as they were."""
    place = tmp_path / "out"
    write_json_lines(
        spark.createDataFrame([('{"a": 1}',)], "value string").coalesce(1), f"{scheme}{place}", "append"
    )
    names = sorted(file.name for file in place.iterdir() if not file.name.startswith("."))
    assert [name.endswith(".json") for name in names if name != "_SUCCESS"] == [True]
    assert "_SUCCESS" in names
    assert [row.a for row in spark.read.json(str(place)).collect()] == [1]


@pytest.mark.needs_program("java")
def test_parquet_has_standard_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    """In a session of the caller too, which is left as it was; a setting of the caller's stays."""
    frame = spark.range(1).coalesce(1).selectExpr("timestamp'2024-05-01 10:00:00.123456' AS t")
    write_parquet(frame, str(tmp_path / "out"), "append")
    (file,) = (tmp_path / "out").glob("*.parquet")
    assert pq.ParquetFile(file).schema.column(0).physical_type == "INT64"
    assert spark.conf.get(TIMESTAMPS, None) is None
    spark.conf.set(TIMESTAMPS, "INT96")
    try:
        with settings(spark, {TIMESTAMPS: "TIMESTAMP_MICROS"}):
            assert spark.conf.get(TIMESTAMPS) == "INT96"
        assert spark.conf.get(TIMESTAMPS) == "INT96"
    finally:
        spark.conf.unset(TIMESTAMPS)
