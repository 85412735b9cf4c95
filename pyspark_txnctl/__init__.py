"""Entry point for Spark: `DefaultSource` of a module whose name begins with `pyspark_` is a data source."""

from txnctl.spark.data_source import TxnctlDataSource as DefaultSource

__all__ = ["DefaultSource"]
