"""Writers of Spark: tasks stage files, and the driver adopts the files named by commit messages in one transaction.

Spark makes a writer in the driver and pickles copies to the tasks; a streaming query makes another writer to commit
each micro-batch, so commit messages carry everything that the commit needs. A commit that fails is followed by an abort
with the same messages; a killed driver and a stopped query call neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from storage.errors import InvalidValue
from txnctl.spark import options
from txnctl.spark.runtime.hints import hints_as_notes
from txnctl.spark.runtime.shipped import Shipped
from txnctl.spark.sink.columns import sink_columns
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import DIRECTORY, Staging, write_name
from txnctl.spark.sink.task_writer import TaskAttempt, stage_rows
from txnctl.spark.sink.temporary_staging import make_temporary_staging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage import Store

PROGRAM: Final = "spark"
_CHANCE_BYTES: Final = 8


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The commit message of one task.

    Attributes:
        partition: number of the partition.
        query: id of the streaming query; None in a batch write.
        file: the staged file; None for a partition without rows.
    """

    partition: int
    query: str | None
    file: StagedFile | None


class _SparkWriter(Shipped):
    """The common part of batch and streaming writers: all fields are pickled to the tasks."""

    def __init__(self, write_options: options.WriteOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise InvalidValue(
                "a write to txnctl appends and cannot overwrite",
                hint='Write with mode("append") or outputMode("append"); a null value deletes its key in a table.',
            )
        self._options = write_options
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        self._sink = sink_columns(fields, write_options.topic, write_options.table, write_options.upsert)
        self._write = write_name(token_hex(_CHANCE_BYTES))
        self._directory = write_options.staging or ""
        self._check_target()
        self._staging().make_directory()

    def store_path(self) -> str:
        return self._options.path

    def _check_target(self) -> None:
        """Check that store, topic and table exist, before any task runs; choose the staging directory.

        Raises:
            StoreNotFound, TopicNotFound, TableNotFound, NotPermitted
        """
        with self._open(read_only=True) as store:
            if self._options.topic is not None and not self._options.create_topic:
                store.create_producer(self._options.topic, connected=False)
            if self._options.table is not None:
                store.table(self._options.table)
            self._directory = self._directory or (
                store.maintenance.make_job_directory(DIRECTORY) or make_temporary_staging()
            )

    def _open(self, *, read_only: bool = False) -> Store:
        from storage import Store
        from txnctl.spark.sink.adoption import LOCK_TIMEOUT_S

        return Store.open(
            self._options.path, read_only=read_only, lock_timeout=LOCK_TIMEOUT_S, program=PROGRAM
        )

    def _staging(self) -> Staging:
        return Staging.at(self._directory)

    def _stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        """In a task: stage its rows."""
        context = TaskContext.get()
        assert context is not None, "Spark runs this in a task"
        attempt = TaskAttempt(
            self._write, context.partitionId(), context.taskAttemptId(), token_hex(_CHANCE_BYTES)
        )
        with hints_as_notes():
            file = stage_rows(
                batches,
                self._sink,
                self._staging(),
                attempt,
                sums_content=self._options.write_id is not None,
            )
        return Staged(attempt.partition, context.getLocalProperty("sql.streaming.queryId"), file)

    def _adopt_staged(self, messages: Sequence[Staged], sink: str | None, batch_id: int) -> None:
        """In the driver: store the staged files of the messages."""
        from txnctl.spark.sink import adoption

        ordered = sorted(messages, key=lambda staged: staged.partition)
        files = [staged.file for staged in ordered if staged.file is not None]
        options = self._options
        batch = adoption.StagedBatch(
            files, options.table, options.producer, sink, batch_id, options.create_topic,
            compares_content=options.write_id is not None, fingerprint=options.write_fingerprint,
            is_upsert=options.upsert is not None,
        )  # fmt: skip
        with hints_as_notes(), self._open() as store:
            adoption.adopt(store, self._staging(), batch)
            adoption.clean_up(self._staging(), [self._write, *(file.write for file in files)])

    def _remove_staged(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """In the driver: remove the staged files of an aborted write."""
        files = [staged.file for staged in _staged_by_tasks(messages) if staged.file is not None]
        for write in {self._write, *(file.write for file in files)}:
            self._staging().abort(write)


class BatchWriter(_SparkWriter, DataSourceArrowWriter):
    """`df.write.format("txnctl").mode("append")…save()`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from txnctl.spark.sink.progress import key_of_write

        write_id = self._options.write_id
        self._adopt_staged(
            _staged_by_tasks(messages), None if write_id is None else key_of_write(write_id), 0
        )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._remove_staged(messages)


class StreamWriter(_SparkWriter, DataSourceStreamArrowWriter):
    """`df.writeStream.format("txnctl")…start()`."""

    def __init__(self, write_options: options.WriteOptions, schema: StructType, overwrite: bool) -> None:
        if write_options.write_id is not None:
            raise InvalidValue(
                "a streaming query has an id of its own; writeId is for batch writes",
                hint="Leave out writeId: the id stands in the checkpoint.",
            )
        super().__init__(write_options, schema, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        staged = _staged_by_tasks(messages)
        if staged:
            query = staged[0].query
            assert query is not None, "Spark names the query in every task of it"
            self._adopt_staged(staged, query, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        self._remove_staged(messages)


def _staged_by_tasks(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    return [message for message in messages if isinstance(message, Staged)]
