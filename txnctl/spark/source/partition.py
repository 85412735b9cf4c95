"""The partitions of a read: small values that Spark pickles to tasks, and that produce the rows in the task.

A partition knows nothing of Spark, so that a job without Spark plans and reads the same ranges; Spark carries it as the
value of an input partition.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from txnctl.spark.runtime.shipped import Shipped
from txnctl.spark.source.local_store import LocalStore

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition


class Partition(Shipped):
    """A partition of a read; each kind of source has a subclass."""

    @abstractmethod
    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Read the rows as Arrow batches of exactly this schema; a task that runs again gets the same rows."""


@dataclass(frozen=True)
class StorePartition(Partition):
    """A partition that a task reads from the store.

    Attributes:
        local_store: the store.
    """

    local_store: LocalStore

    def store_path(self) -> str:
        return self.local_store.path


def input_partitions(partitions: Iterable[Partition]) -> list[InputPartition]:
    """Return partitions as Spark carries them to tasks."""
    from pyspark.sql.datasource import InputPartition

    return [InputPartition(partition) for partition in partitions]


def batches(carried: InputPartition, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Read the rows of a partition; none of the empty partition that Spark makes for a plan without partitions."""
    partition = carried.value
    return partition.batches(schema) if isinstance(partition, Partition) else iter(())
