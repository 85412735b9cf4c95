"""Settings of a session for one job, in a session of the caller's too, where each is put back at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STANDARD_TIMESTAMPS: Final = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""Parquet's own timestamps in files that are written; Spark's default is INT96, which Parquet has deprecated."""


@contextmanager
def settings(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set what the caller has not set, while the block runs."""
    unset = [name for name in values if spark.conf.get(name, None) is None]
    for name in unset:
        spark.conf.set(name, values[name])
    try:
        yield
    finally:
        for name in unset:
            spark.conf.unset(name)
