"""Where Spark looks: of a module whose name begins with `pyspark_` it takes `DefaultSource` as a data source."""

from txnctl.spark.data_source import TxnctlDataSource as DefaultSource

__all__ = ["DefaultSource"]
