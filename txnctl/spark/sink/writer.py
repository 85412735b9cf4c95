"""Writing with Spark: tasks stage files, and the driver adopts what their commit messages name in one transaction.

Spark makes a writer in the driver and hands copies of it to the tasks; a streaming query makes another one to commit
each micro-batch, so whatever the commit has to know comes with the messages. A commit that fails is followed by an
abort with the same messages; a driver that is killed, and a query that is stopped, calls neither.
"""

from __future__ import annotations

import os
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
from txnctl.spark.runtime.explained import explained
from txnctl.spark.sink import task_writer
from txnctl.spark.sink.columns import sink_columns
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import DIRECTORY, Staging, write_name

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage import Store

PROGRAM: Final = "spark"
_CHANCE_BYTES: Final = 8


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What one task staged.

    Attributes:
        partition: its number.
        query: id of the streaming query; None in a batch write.
        file: None if it had no rows.
    """

    partition: int
    query: str | None
    file: StagedFile | None


class _Write:
    """What batch and streaming writes share: all of it is pickled to the tasks."""

    def __init__(self, asked: options.Write, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise InvalidValue(
                "a write to txnctl adds, it does not overwrite",
                hint='Write with mode("append") or outputMode("append"); a null value deletes its key in a table.',
            )
        self._asked = asked
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        self._sink = sink_columns(fields, asked.topic, asked.table)
        self._write = write_name(token_hex(_CHANCE_BYTES))
        self._place = asked.staging or os.path.join(os.path.abspath(asked.path), DIRECTORY)
        self._check_target()
        self._make_place()

    def _check_target(self) -> None:
        """That the store and what the options name are there, before any task runs.

        Raises:
            StoreNotFound, TopicNotFound, TableNotFound
        """
        with self._open(read_only=True) as store:
            if self._asked.topic is not None:
                store.create_producer(self._asked.topic, connected=False)
            if self._asked.table is not None:
                store.table(self._asked.table)

    def _make_place(self) -> None:
        if self._asked.staging is None:
            os.makedirs(self._place, mode=0o700, exist_ok=True)
        self._staging().make()

    def _open(self, *, read_only: bool = False) -> Store:
        from storage import Store
        from txnctl.spark.sink.adoption import LOCK_TIMEOUT_S

        return Store.open(self._asked.path, read_only=read_only, lock_timeout=LOCK_TIMEOUT_S, program=PROGRAM)

    def _staging(self) -> Staging:
        return Staging.at(self._place)

    def _stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        """In a task: stage its rows."""
        context = TaskContext.get()
        assert context is not None, "Spark runs this in a task"
        partition, chance = context.partitionId(), token_hex(_CHANCE_BYTES)
        with explained():
            file = task_writer.stage(
                batches, self._sink, self._staging(), self._write, partition, context.taskAttemptId(), chance
            )
        return Staged(partition, context.getLocalProperty("sql.streaming.queryId"), file)

    def _adopt(self, messages: Sequence[Staged], sink: str | None, batch_id: int) -> None:
        """In the driver: store what the messages name."""
        from txnctl.spark.sink import adoption

        ordered = sorted(messages, key=lambda each: each.partition)
        files = [each.file for each in ordered if each.file is not None]
        batch = adoption.Batch(files, self._asked.table, self._asked.producer, sink, batch_id)
        with explained(), self._open() as store:
            adoption.adopt(store, self._staging(), batch)
            adoption.clean_up(store, self._staging(), [self._write, *(file.write for file in files)])

    def _drop(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """In the driver: remove what was staged for a write that is given up."""
        files = [each.file for each in _said(messages) if each.file is not None]
        for write in {self._write, *(file.write for file in files)}:
            self._staging().remove(write)


class BatchWriter(_Write, DataSourceArrowWriter):
    """`df.write.format("txnctl").mode("append")…save()`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from txnctl.spark.sink.progress import key_of_write

        write_id = self._asked.write_id
        self._adopt(_said(messages), None if write_id is None else key_of_write(write_id), 0)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._drop(messages)


class StreamWriter(_Write, DataSourceStreamArrowWriter):
    """`df.writeStream.format("txnctl")…start()`."""

    def __init__(self, asked: options.Write, schema: StructType, overwrite: bool) -> None:
        if asked.write_id is not None:
            raise InvalidValue(
                "a streaming query has an id of its own; writeId is for batch writes",
                hint="Leave it out: the id stands in the checkpoint.",
            )
        super().__init__(asked, schema, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        said = _said(messages)
        if said:
            query = said[0].query
            assert query is not None, "Spark names the query in every task of it"
            self._adopt(said, query, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        self._drop(messages)


def _said(messages: Sequence[WriterCommitMessage | None]) -> list[Staged]:
    return [each for each in messages if isinstance(each, Staged)]
