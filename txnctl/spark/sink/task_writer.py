"""The task side of a write: rows become packed entries in one staged file. No lmdb, no store.

Row order is kept for each topic. Messages that do not fill an entry yet are buffered for the next batch of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from storage.limits import ENTRY_BYTES_TARGET, ENTRY_MESSAGES_MAX
from storage.topic.batching import entries_of
from storage.topic.entry import Columns
from txnctl.spark.sink import content_sum
from txnctl.spark.sink.columns import SinkColumns, messages_of, split_by_target
from txnctl.spark.sink.staged_file import StagedFile, StagedFileWriter
from txnctl.spark.sink.staging import Staging, file_name

if TYPE_CHECKING:
    import pyarrow as pa

WAITING_BYTES_MAX = 32 * ENTRY_BYTES_TARGET
"""The most bytes buffered over all topics; beyond it partly filled entries are written."""


class TaskAttempt(NamedTuple):
    """An attempt of a task of a write.

    Attributes:
        write: directory of the write.
        chance: 16 hexadecimal digits, unique to the file.
    """

    write: str
    partition: int
    number: int
    chance: str


def stage_rows(
    batches: Iterable[pa.RecordBatch],
    sink: SinkColumns,
    staging: Staging,
    attempt: TaskAttempt,
    *,
    sums_content: bool = False,
) -> StagedFile | None:
    """Stage the rows of a task; None for a task without rows. A failed attempt leaves no file.

    Args:
        sums_content: describe the rows by their sum too, for a write that may be repeated.

    Raises:
        BadInput: a row cannot be stored.
        NotFound, StoreFull, NotPermitted: the staging directory cannot be written.
    """
    where, rows_before = f"partition {attempt.partition}", 0
    with ExitStack() as stack:
        file: StagedFileWriter | None = None
        filler: _EntryFiller | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            if file is None or filler is None:
                name = file_name(attempt.partition, attempt.number, attempt.chance)
                file = stack.enter_context(staging.writing(attempt.write, name))
                filler = _EntryFiller(file)
            messages = messages_of(batch, sink, where, rows_before)
            size = batch.nbytes / batch.num_rows
            for target, part in split_by_target(batch, messages, sink, where, rows_before):
                filler.add(target, part, int(size * part.count))
                if sums_content:
                    file.content = content_sum.joined((file.content, content_sum.sum_of(target, part)))
            rows_before += batch.num_rows
        if file is None or filler is None:
            return None
        filler.flush()
        return file.close()


class _EntryFiller:
    """Buffers messages by target until they fill an entry."""

    def __init__(self, file: StagedFileWriter) -> None:
        self._file = file
        self._pending: dict[str, tuple[Columns, int]] = {}
        self._bytes = 0

    def add(self, target: str, messages: Columns, size: int) -> None:
        """Add messages of about `size` bytes."""
        pending = self._pending.pop(target, None)
        if pending is not None:
            self._bytes -= pending[1]
            messages, size = Columns.joined([pending[0], messages]), pending[1] + size
        if size >= ENTRY_BYTES_TARGET or messages.count >= ENTRY_MESSAGES_MAX:
            self._write(target, messages)
            return
        self._pending[target] = (messages, size)
        self._bytes += size
        if self._bytes >= WAITING_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Write all buffered messages."""
        for target, (messages, _) in self._pending.items():
            self._write(target, messages)
        self._pending.clear()
        self._bytes = 0

    def _write(self, target: str, messages: Columns) -> None:
        for entry in entries_of(messages):
            self._file.add(target, entry)
