"""Reading topics as a stream: micro-batches between offsets, which are positions for each topic.

At READ_COMMITTED a batch ends at maxReadPosition at the latest, so that nothing in it changes any more. Where a stream
starts at the latest message, only a subscription can keep that place: Spark asks for it again when it is killed before
its first batch is done. The subscription's cursor follows what Spark has committed, so that the lag of the stream shows
where all others do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
from txnctl.spark.runtime.explained import explained
from txnctl.spark.source import offsets
from txnctl.spark.source.partition import batches
from txnctl.spark.source.topic_progress import TopicProgress

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from txnctl.spark.options import TopicStream


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """See the module. Spark keeps one of these, in a process of its own, as long as the query runs."""

    def __init__(self, wanted: TopicStream, schema: StructType) -> None:
        self._wanted = wanted
        self._schema = schemas.arrow_schema(schema, schemas.MESSAGE_TYPES)
        self._progress = TopicProgress(wanted)
        self._target: dict[str, Position] | None = None
        self._end: dict[str, Position] | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802
        """Where a new query starts; asked again and again, it stays the same until a batch was committed."""
        with explained():
            return offsets.written(self._progress.begin())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the options allow for one micro-batch."""
        if self._wanted.messages is not None:
            return ReadMaxRows(self._wanted.messages)
        return ReadAllAvailable() if self._wanted.bytes is None else ReadMaxBytes(self._wanted.bytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        """How far the next micro-batch reads."""
        messages = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        if messages is not None:
            size = self._wanted.bytes
        with explained():
            self._end = self._progress.advance(offsets.positions(start), messages, size, self._target)
            return offsets.written(self._end)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Note what is there now: the query ends when it has read that."""
        with explained():
            self._target = self._progress.latest()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """What `latestOffset` is in the progress of a query: how far one could read now, and by how much that is more.

        Spark asks for it when it has decided how far the next micro-batch reads; `behind` counts from there.
        """
        with explained():
            return self._progress.report(self._end)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The ranges between two offsets."""
        with explained():
            slots = os.cpu_count() or 1
            return list(self._progress.ranges(offsets.positions(start), offsets.positions(end), slots))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(partition, self._schema)

    def commit(self, end: dict[str, Any]) -> None:
        """All up to this offset is done: the cursor of the subscription follows."""
        with explained():
            self._progress.acknowledge(offsets.positions(end))

    def stop(self) -> None:
        self._progress.close()
