"""Topics and tables as a Spark data source: `spark.read.format("txnctl")`. docs/SPARK.md has options and schemas.

Spark finds the format by itself where txnctl is installed, through the package `pyspark_txnctl`. Spark does not search
code shipped with `--py-files`: a program shipped that way calls `register(spark)` once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register(spark: SparkSession) -> None:
    """Register `format("txnctl")` with a session.

    Through Spark Connect the format runs at the server. TXNCTL_STORE counts as in this process, where it is set.
    """
    from pyspark.sql.utils import is_remote

    from txnctl.spark.data_source import TxnctlDataSource, with_store_of_this_process

    spark.dataSource.register(with_store_of_this_process() if is_remote() else TxnctlDataSource)


def read_topic(spark: SparkSession, **options: str) -> DataFrame:
    """Read offloaded topics with Spark's own Parquet reader: the fast way to read large topics (docs/SCALE.md).

    Args:
        options: the options of reading topics with `format("txnctl")`, `offloadPath` among them.

    Raises:
        StoreNotFound, TopicNotFound, InvalidValue, OffloadInvalid
    """
    from txnctl.spark.source.native_read import read_topic as read_offloaded

    return read_offloaded(spark, **options)
