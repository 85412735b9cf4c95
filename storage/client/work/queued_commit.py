"""The commit of a transaction in the queue of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from storage.client.append import Appender, ProducerProgress
from storage.client.work.batch_outcome import BatchOutcome
from storage.client.work.end import End
from storage.disk.queued_writes import QueuedWrites
from storage.disk.view import WriteBatch
from storage.errors import TxnctlError
from storage.txn.coordinator import Ended
from storage.txn.record import TransactionRecord

if TYPE_CHECKING:
    from storage.client.work.buffers import Buffers
    from storage.client.work.end_queue import EndQueue
    from storage.client.work.handle import TransactionHandle

Commit = Callable[[WriteBatch], tuple[TransactionRecord, Ended]]


class QueuedCommit(End):
    """See the module."""

    __slots__ = ("_buffers", "_commit", "_handle", "_outcome", "_queue", "_record")

    def __init__(
        self,
        handle: TransactionHandle,
        buffers: Buffers,
        queue: EndQueue,
        commit: Commit,
        outcome: BatchOutcome,
    ) -> None:
        super().__init__(handle.txn_id, buffers.size)
        self._handle = handle
        self._buffers = buffers
        self._queue = queue
        self._commit = commit
        self._outcome = outcome
        self._record: TransactionRecord | None = None

    def is_in(self, queue: QueuedWrites | None) -> bool:
        """Whether the commit is in this queue."""
        return queue is self._queue

    def flush_queue(self) -> None:
        """Flush the queue, so that the outcome is known.

        Raises:
            as `EndQueue.flush_ends`
        """
        self._queue.flush_ends()

    def change(self, batch: WriteBatch) -> None:
        self._record, _ = self._commit(batch)

    def progress(self) -> Sequence[tuple[Appender, ProducerProgress]]:
        return self._buffers.outbox.progress()

    def keys(self) -> Sequence[tuple[str, bytes]]:
        return self._buffers.write_set.keys()

    def mark_durable(self) -> None:
        assert self._record is not None, "a committed batch has run"
        self._handle.settle_queued(self._record, self._outcome)

    def refuse(self, error: TxnctlError) -> None:
        self.error = error
        self._handle.release_queued(self._outcome)

    def is_committed(self) -> bool | None:
        handle = self._handle
        with suppress(TxnctlError), handle.connection.environment.view() as view:
            stored = self._outcome.find_record(view, handle.txn_id)
            return stored is not None and self._outcome.is_committed(stored)
        return None
