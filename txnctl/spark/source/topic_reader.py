"""Reading topics in a batch: planned on the host of the store, read by tasks side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage.values.names import short_topic_name
from txnctl.spark import schemas
from txnctl.spark.runtime.explained import explained
from txnctl.spark.source.partition import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage import Store
    from txnctl.spark.options import TopicRead
    from txnctl.spark.source.partition import Partition
    from txnctl.spark.source.topic_range import TopicRange


class TopicReader(DataSourceReader):
    """See the module."""

    def __init__(self, wanted: TopicRead, schema: StructType) -> None:
        self._wanted = wanted
        self._schema = schemas.arrow_schema(schema, schemas.MESSAGE_TYPES)

    def partitions(self) -> list[InputPartition]:
        """Ranges of all topics, with bounds from one moment.

        Raises:
            StoreNotFound, TopicNotFound, InvalidValue
        """
        with explained():
            return list(planned(self._wanted))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)


def planned(wanted: TopicRead) -> Sequence[Partition]:
    """The partitions that a batch read consists of: ranges of the store, or of files where tasks cannot open it.

    Raises:
        StoreNotFound, TopicNotFound, InvalidValue, OffloadInvalid
    """
    from storage import Store

    with Store.open(wanted.path, read_only=True, program="Spark") as store:
        slots = os.cpu_count() or 1
        ranges = ranges_of(store, wanted, slots)
        if wanted.offload is None:
            return ranges
        from txnctl.spark.ledger_files.range_plan import file_pieces

        return file_pieces(store, ranges, wanted.offload, wanted.minimum or slots)


def ranges_of(store: Store, wanted: TopicRead, slots: int) -> list[TopicRange]:
    """The ranges of the store, those of one topic after each other.

    Args:
        slots: how many tasks may run at once.

    Raises:
        TopicNotFound, InvalidValue
    """
    from txnctl.spark.source import topic_plan
    from txnctl.spark.source.local_store import LocalStore

    names = None if wanted.topics.pattern is not None else [*map(short_topic_name, wanted.topics.names)]
    extents = topic_plan.chosen(store.reports.topic_extents(names), wanted.topics)
    return topic_plan.ranges(LocalStore.of(store), extents, wanted, store.reports.position_at, slots)
