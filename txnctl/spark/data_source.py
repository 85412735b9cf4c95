"""`format("txnctl")` as Spark sees it. What is asked for is read by `options`; each reader and writer has a module.

Spark imports this module whenever it looks for data sources, so it imports nothing else that is heavy.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from txnctl.spark.runtime.explained import explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class TxnctlDataSource(DataSource):
    """Topics to read, in batches or as a stream, tables to read, and both to write to."""

    @classmethod
    def name(cls) -> str:
        return "txnctl"

    def schema(self) -> str:
        from txnctl.spark import options, schemas

        if options.names_table(self.options):
            return schemas.ddl(schemas.TABLE_COLUMNS)
        with explained():
            return schemas.ddl(schemas.message_columns(options.has_properties(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        from txnctl.spark import options

        if options.names_table(self.options):
            from txnctl.spark.source.table_reader import TableReader

            with explained():
                return TableReader(options.table_read(self.options), schema)
        from txnctl.spark.source.topic_reader import TopicReader

        with explained():
            return TopicReader(options.topic_read(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from txnctl.spark import options
        from txnctl.spark.source.topic_stream import TopicStreamReader

        with explained():
            return TopicStreamReader(options.topic_stream(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from txnctl.spark import options
        from txnctl.spark.sink.writer import BatchWriter

        with explained():
            return BatchWriter(options.write(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from txnctl.spark import options
        from txnctl.spark.sink.writer import StreamWriter

        with explained():
            return StreamWriter(options.write(self.options), schema, overwrite)
