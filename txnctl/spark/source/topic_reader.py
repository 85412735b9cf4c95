"""Batch reads of topics: planned on the host of the store, read by tasks in parallel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage.values.names import short_topic_name
from txnctl.spark import schemas
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.runtime.shipped import Shipped
from txnctl.spark.source.partition import batches, input_partitions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from storage import Store
    from txnctl.spark.options import TopicReadOptions
    from txnctl.spark.source.compacted_range import CompactedRange
    from txnctl.spark.source.partition import Partition
    from txnctl.spark.source.topic_range import TopicRange


class TopicReader(Shipped, DataSourceReader):
    """The reader of `spark.read` for topics."""

    def __init__(self, options: TopicReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schemas.arrow_schema(schema, schemas.MESSAGE_TYPES)

    def store_path(self) -> str:
        return self._options.path

    def partitions(self) -> list[InputPartition]:
        """Return ranges of all topics, with bounds from one view of the store.

        Raises:
            StoreNotFound, TopicNotFound, InvalidValue
        """
        with hints_as_notes():
            return input_partitions(plan_partitions(self._options))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)


class FilteringTopicReader(TopicReader):
    """The reader of a DataFrame that serves one query, with the filters of that query."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take filters on key, position and publish time, and return the others."""
        from txnctl.spark.source.pushed_filters import select_messages

        selection, rest = select_messages(filters, self._options.selection)
        self._options = replace(self._options, selection=selection)
        return rest


def topic_reader(options: TopicReadOptions, schema: StructType) -> TopicReader:
    """Return the reader for the options."""
    return (FilteringTopicReader if options.pushes_filters else TopicReader)(options, schema)


def plan_partitions(options: TopicReadOptions) -> Sequence[Partition]:
    """Plan the partitions of a batch read: ranges of the store, or of files where tasks cannot open the store.

    Raises:
        StoreNotFound, TopicNotFound, InvalidValue, OffloadInvalid
    """
    from storage import Store

    with Store.open(options.path, read_only=True, program="Spark") as store:
        slots = os.cpu_count() or 1
        ranges = plan_ranges(store, options, slots)
        if options.offload_path is None:
            return ranges
        from txnctl.spark.ledger_files.range_plan import file_partitions
        from txnctl.spark.source.topic_range import TopicRange

        # With readCompacted offloadPath is refused: all of these are ranges of the log.
        of_log = [part for part in ranges if isinstance(part, TopicRange)]
        return file_partitions(store, of_log, options.offload_path, options.min_partitions or slots)


def plan_ranges(store: Store, options: TopicReadOptions, slots: int) -> list[TopicRange | CompactedRange]:
    """Plan the ranges of the store, topic by topic.

    Args:
        slots: how many tasks may run at once.

    Raises:
        TopicNotFound, InvalidValue
    """
    from txnctl.spark.source import topic_plan
    from txnctl.spark.source.local_store import LocalStore

    names = None if options.topics.pattern is not None else [*map(short_topic_name, options.topics.names)]
    extents = topic_plan.select_extents(store.reports.topic_extents(names), options.topics)
    first_at: topic_plan.At = store.reports.position_at
    if options.offload_path is not None:
        from txnctl.spark.ledger_files.archive import Archives
        from txnctl.spark.ledger_files.root import Root

        archives = Archives(Root.of_path(options.offload_path))
        extents, first_at = archives.extend(store, extents), archives.first_at(first_at)
    return topic_plan.ranges(LocalStore.of_open_store(store), extents, options, first_at, slots)
