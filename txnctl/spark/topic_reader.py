"""Reading topics in a batch: planned on the host of the store, read by tasks side by side."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage.names import short_topic_name
from txnctl.spark import schemas
from txnctl.spark.explained import explained
from txnctl.spark.partition import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from txnctl.spark.options import TopicRead
    from txnctl.spark.topic_range import TopicRange


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


def planned(wanted: TopicRead) -> list[TopicRange]:
    """The ranges that a batch read consists of.

    Raises:
        StoreNotFound, TopicNotFound, InvalidValue
    """
    from storage import Store
    from txnctl.spark import topic_plan
    from txnctl.spark.local_store import LocalStore

    with Store.open(wanted.path, read_only=True, program="Spark") as store:
        names = None if wanted.topics.pattern is not None else [*map(short_topic_name, wanted.topics.names)]
        extents = topic_plan.chosen(store.extents(names), wanted.topics)
        slots = os.cpu_count() or 1
        return topic_plan.ranges(LocalStore.of(store), extents, wanted, store.position_at, slots)
