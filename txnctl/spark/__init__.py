"""Spark reads and writes topics and tables: `spark.read.format("txnctl")`. docs/SPARK.md has options and schemas.

Spark finds the format by itself where txnctl is installed, through the package `pyspark_txnctl`. Code that is shipped
with `--py-files` is not looked at for that: such a program calls `register(spark)` once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `format("txnctl")` known to a session."""
    from txnctl.spark.data_source import TxnctlDataSource

    spark.dataSource.register(TxnctlDataSource)
