"""Spark reads and writes topics and tables: `spark.read.format("txnctl")`. docs/SPARK.md has options and schemas.

Spark finds the format by itself where txnctl is installed, through the package `pyspark_txnctl`. Code that is shipped
with `--py-files` is not looked at for that: such a program calls `register(spark)` once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("txnctl")` known to a session."""
    from txnctl.spark.data_source import TxnctlDataSource

    spark.dataSource.register(TxnctlDataSource)


def read_topic(spark: SparkSession, **given: str) -> DataFrame:
    """Topics that are offloaded, read by Spark's own Parquet reader: the fast way to read much (docs/SCALE.md).

    Args:
        given: the options of reading topics with `format("txnctl")`, `offloadPath` among them.

    Raises:
        StoreNotFound, TopicNotFound, InvalidValue, OffloadInvalid
    """
    from txnctl.spark.source.native_read import read_topic as read

    return read(spark, **given)
