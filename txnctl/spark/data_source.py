"""The data source `format("txnctl")`: `options` parses the options; each reader and writer has a module of its own.

Spark imports this module whenever a session looks for data sources, so no heavy module is imported at the top.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from txnctl.spark.runtime.hints import hints_as_notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class TxnctlDataSource(DataSource):
    """Read topics in batches or as a stream, read tables and their changes, write to topics and tables."""

    @classmethod
    def name(cls) -> str:
        return "txnctl"

    def schema(self) -> str:
        from txnctl.spark import options, schemas

        if options.reads_changes(self.options):
            return schemas.ddl(schemas.CHANGE_TYPES)
        if options.names_table(self.options):
            return schemas.ddl(schemas.TABLE_COLUMNS)
        with hints_as_notes():
            return schemas.ddl(schemas.message_columns(options.has_properties(self.options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        from txnctl.spark import options

        if options.reads_changes(self.options):
            from txnctl.spark.source.change_reader import ChangeReader

            with hints_as_notes():
                return ChangeReader(options.change_read(self.options), schema)
        if options.names_table(self.options):
            from txnctl.spark.source.table_reader import TableReader

            with hints_as_notes():
                return TableReader(options.table_read(self.options), schema)
        from txnctl.spark.source.topic_reader import TopicReader

        with hints_as_notes():
            return TopicReader(options.topic_read(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from txnctl.spark import options

        if options.names_table(self.options):
            from txnctl.spark.source.change_stream import ChangeStreamReader

            with hints_as_notes():
                return ChangeStreamReader(options.change_stream(self.options), schema)
        from txnctl.spark.source.topic_stream import TopicStreamReader

        with hints_as_notes():
            return TopicStreamReader(options.topic_stream(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from txnctl.spark import options
        from txnctl.spark.sink.writer import BatchWriter

        with hints_as_notes():
            return BatchWriter(options.write(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from txnctl.spark import options
        from txnctl.spark.sink.writer import StreamWriter

        with hints_as_notes():
            return StreamWriter(options.write(self.options), schema, overwrite)
