"""Streaming reads of topics: micro-batches between offsets, an offset being a position for each topic.

At READ_COMMITTED a micro-batch ends at maxReadPosition at the latest, so that its messages never change. A stream that
starts at the latest message needs a subscription to record that start: Spark asks for the start again when the query is
killed before its first batch is committed. The subscription's cursor follows the offsets that Spark has committed, so
that the lag of the stream shows in `subscriptions lag`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from storage.values.position import Position
from txnctl.spark import schemas
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.runtime.shipped import Shipped
from txnctl.spark.source import offsets
from txnctl.spark.source.partition import batches, input_partitions
from txnctl.spark.source.topic_progress import TopicProgress, TopicReport

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from txnctl.spark.options import TopicStreamOptions


class TopicStreamReader(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of `spark.readStream`. Spark keeps one instance, in a process of its own, for the whole query."""

    def __init__(self, options: TopicStreamOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schemas.arrow_schema(schema, schemas.MESSAGE_TYPES)
        self._progress = TopicProgress(options)
        self._target: dict[str, Position] | None = None
        self._end: dict[str, Position] | None = None

    def store_path(self) -> str:
        return self._options.path

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Return the start of a new query; repeated calls return the same offset until a batch is committed."""
        with hints_as_notes():
            return offsets.offset_of(self._progress.begin())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one micro-batch by the options."""
        if self._options.max_messages is not None:
            return ReadMaxRows(self._options.max_messages)
        return (
            ReadAllAvailable() if self._options.max_bytes is None else ReadMaxBytes(self._options.max_bytes)
        )

    def latestOffset(self, start: Mapping[str, object], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """Return the end of the next micro-batch."""
        max_messages = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        max_bytes = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        if max_messages is not None:
            max_bytes = self._options.max_bytes
        with hints_as_notes():
            self._end = self._progress.advance(
                offsets.parse_offset(start), max_messages, max_bytes, self._target
            )
            return offsets.offset_of(self._end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Record the current ends of the topics: the query stops there."""
        with hints_as_notes():
            self._target = self._progress.latest()

    def reportLatestOffset(self) -> dict[str, TopicReport]:  # noqa: N802
        """Return `latestOffset` of the query's progress: the readable end of each topic, and the number of messages
        behind.

        Spark calls this method after choosing the end of the next micro-batch; `behind` counts from that end.
        """
        with hints_as_notes():
            return self._progress.report(self._end)

    def partitions(self, start: Mapping[str, object], end: Mapping[str, object]) -> list[InputPartition]:
        """Plan the ranges between two offsets."""
        with hints_as_notes():
            slots = os.cpu_count() or 1
            ranges = self._progress.ranges(offsets.parse_offset(start), offsets.parse_offset(end), slots)
            return input_partitions(ranges)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)

    def commit(self, end: Mapping[str, object]) -> None:
        """Move the cursor of the subscription to the committed offset."""
        with hints_as_notes():
            self._progress.acknowledge(offsets.parse_offset(end))

    def stop(self) -> None:
        self._progress.close()
