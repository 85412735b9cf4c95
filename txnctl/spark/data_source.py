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

        with hints_as_notes():
            options.check_store_name(self.options)
            if options.reads_changes(self.options):
                return schemas.ddl(schemas.CHANGE_TYPES)
            known = schemas.TABLE_COLUMNS
            if not options.names_table(self.options):
                known = schemas.message_columns(options.has_properties(self.options))
            columns = options.columns(self.options)
            return schemas.ddl(known) if columns is None else schemas.chosen(columns, known)

    def reader(self, schema: StructType) -> DataSourceReader:
        from txnctl.spark import options

        with hints_as_notes():
            reads_changes = options.reads_changes(self.options)
        if reads_changes:
            from txnctl.spark.source.change_reader import ChangeReader

            with hints_as_notes():
                return ChangeReader(options.change_read(self.options), schema)
        if options.names_table(self.options):
            from txnctl.spark.source.table_reader import table_reader

            with hints_as_notes():
                self._check_columns(schema)
                return table_reader(options.table_read(self.options), schema)
        from txnctl.spark.source.topic_reader import topic_reader

        with hints_as_notes():
            self._check_columns(schema)
            return topic_reader(options.topic_read(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from txnctl.spark import options

        if options.names_table(self.options):
            from txnctl.spark.source.change_stream import ChangeStreamReader

            with hints_as_notes():
                return ChangeStreamReader(options.change_stream(self.options), schema)
        from txnctl.spark.source.topic_stream import TopicStreamReader

        with hints_as_notes():
            self._check_columns(schema)
            return TopicStreamReader(options.topic_stream(self.options), schema)

    def _check_columns(self, schema: StructType) -> None:
        """Check that the option `columns` and a schema of the program do not differ.

        Raises:
            InvalidValue
        """
        from storage.errors import InvalidValue
        from txnctl.spark import options

        columns = options.columns(self.options)
        if (
            columns is not None
            and [part.strip().partition(" ")[0] for part in columns.split(",")] != schema.names
        ):
            raise InvalidValue(
                f"columns and the schema ask for different columns: {columns}; {', '.join(schema.names)}",
                hint="Leave one of them out.",
            )

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


def with_store_of_this_process() -> type[DataSource]:
    """Return the data source with the store that TXNCTL_STORE names here as the default of `path`."""
    from os import environ

    from txnctl.spark.store_name import shown_name

    value = environ.get("TXNCTL_STORE")
    if not value:
        return TxnctlDataSource
    path = shown_name(value)

    class OfStore(TxnctlDataSource):
        """The data source as a value: Spark Connect carries the class to the server with the path."""

        def __init__(self, options: dict[str, str]) -> None:
            if "path" not in options and "store" not in options:
                options["path"] = path
            super().__init__(options)

    return OfStore
