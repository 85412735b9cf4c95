"""What a task is given to read: a small value that Spark carries to it, and that gives the rows there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

if TYPE_CHECKING:
    import pyarrow as pa


class Partition(InputPartition):
    """One kind for each place that rows are read from."""

    @abstractmethod
    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows as Arrow batches of exactly this schema; the same ones each time a task runs."""


def batches(partition: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a partition; none of the empty one that Spark makes where there are no partitions."""
    return partition.batches(schema) if isinstance(partition, Partition) else iter(())
