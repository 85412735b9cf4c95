"""What a task of a write does: its rows become packed entries in one staged file. No lmdb, no store.

The order of its rows is kept for each topic. What has not filled an entry yet waits for the next batch of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from storage.limits import ENTRY_BYTES_TARGET, ENTRY_MESSAGES_MAX
from storage.topic.batching import entries_of
from storage.topic.entry import Columns
from txnctl.spark.sink.columns import SinkColumns, messages_of, routed
from txnctl.spark.sink.staged_file import StagedFile, StagedFileWriter
from txnctl.spark.sink.staging import Staging, file_name

if TYPE_CHECKING:
    import pyarrow as pa

WAITING_BYTES_MAX = 32 * ENTRY_BYTES_TARGET
"""What waits for more, over all topics, before it becomes entries as it is."""


def stage(
    batches: Iterable[pa.RecordBatch],
    sink: SinkColumns,
    staging: Staging,
    write: str,
    partition: int,
    attempt: int,
    chance: str,
) -> StagedFile | None:
    """Stage the rows of a task; what was staged, None for no rows. If it fails nothing stays.

    Args:
        write: directory of the write.
        chance: 16 hexadecimal digits that no other file has.

    Raises:
        BadInput: a row cannot be stored.
        NotFound, StoreFull, NotPermitted: the place for staged files.
    """
    where, before = f"partition {partition}", 0
    with ExitStack() as stack:
        file: StagedFileWriter | None = None
        outbox: _Outbox | None = None
        for batch in batches:
            if not batch.num_rows:
                continue
            if file is None or outbox is None:
                name = file_name(partition, attempt, chance)
                file = stack.enter_context(staging.writing(write, name))
                outbox = _Outbox(file)
            messages = messages_of(batch, sink, where, before)
            size = batch.nbytes / batch.num_rows
            for target, part in routed(batch, messages, sink, where, before):
                outbox.add(target, part, int(size * part.count))
            before += batch.num_rows
        if file is None or outbox is None:
            return None
        outbox.flush()
        return file.close()


class _Outbox:
    """Messages that wait until they fill an entry, by target."""

    def __init__(self, file: StagedFileWriter) -> None:
        self._file = file
        self._waiting: dict[str, tuple[Columns, int]] = {}
        self._bytes = 0

    def add(self, target: str, messages: Columns, size: int) -> None:
        """Add messages of about `size` bytes."""
        waiting = self._waiting.pop(target, None)
        if waiting is not None:
            self._bytes -= waiting[1]
            messages, size = Columns.joined([waiting[0], messages]), waiting[1] + size
        if size >= ENTRY_BYTES_TARGET or messages.count >= ENTRY_MESSAGES_MAX:
            self._write(target, messages)
            return
        self._waiting[target] = (messages, size)
        self._bytes += size
        if self._bytes >= WAITING_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Write all that waits."""
        for target, (messages, _) in self._waiting.items():
            self._write(target, messages)
        self._waiting.clear()
        self._bytes = 0

    def _write(self, target: str, messages: Columns) -> None:
        for entry in entries_of(messages):
            self._file.add(target, entry)
