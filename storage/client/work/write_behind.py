"""When the buffers of a transaction are written: with a flush or the commit, and about a second after the oldest send.

The watch over overdue messages (process/background_flush.py) calls from a thread of its own. An operation of the
transaction looks for overdue messages too, so the watch leaves a transaction in use alone.
"""

from __future__ import annotations

from storage.client.work.buffers import Buffers, Part
from storage.client.work.handle import TransactionHandle
from storage.client.work.outbox import BufferedBatch
from storage.disk.view import WriteBatch
from storage.errors import TxnctlError, WriterBusy
from storage.limits import LOCK_NOTE_S
from storage.process.background_flush import WRITE_BEHIND_NS
from storage.txn.record import TransactionRecord
from storage.values.txn_state import TransactionState

_OVERDUE_WAIT_S = 0.2
"""How long the watch waits for the writer gate before it comes again."""


class WriteBehind:
    """See the module. `locate` and `write_overdue` take the lock of the handle; the rest is called under the lock.

    Attributes:
        is_abandoned: whether nobody will end the transaction: its next batch, or the watch, aborts it.
        failure: the error of the watch that the next operation raises; None if there is none.
        is_watched: whether the watch looks for overdue messages of this transaction.
    """

    __slots__ = ("_buffers", "_flusher", "_handle", "_noted_ns", "failure", "is_abandoned", "is_watched")

    def __init__(self, handle: TransactionHandle, buffers: Buffers) -> None:
        self._handle = handle
        self._buffers = buffers
        self._flusher = handle.environment.flusher
        self.is_watched = self.is_abandoned = False
        self.failure: TxnctlError | None = None
        self._noted_ns = -1
        handle.on_discard = buffers.discard

    def enter(self) -> None:
        """Begin an operation: raise a failure of the watch, resolve doubt, store messages that are overdue.

        Raises:
            TxnctlError: as a batch with the buffered messages.
            TransactionNotOpen: the transaction ended without a record; one is made, so that the error has a number.
            StoreClosed, StoreInvalid
        """
        handle, outbox = self._handle, self._buffers.outbox
        connection, state = handle.connection, handle.environment.usability
        if self.failure is not None:
            self.raise_failure()
        if connection.is_closed or connection.read_only or state.failed is not None or state.is_old:
            connection.check_writable()
        if handle.doubt is not None or handle.queued is not None:
            handle.resolve()
        if handle.ended is not None:
            handle.use()
        if not outbox.is_empty and handle.connection.clock.boot_ns() - outbox.since_ns >= WRITE_BEHIND_NS:
            self.store(outbox)

    def store(self, part: Part, timeout_s: float | None = None) -> None:
        """Write a part in one batch that leaves the transaction open; of an abandoned one, nothing is written.

        Args:
            timeout_s: how long to wait for the writer gate, if not as long as the connection does.

        Raises:
            TransactionNotOpen, TransactionTimedOut, LostConflict, RequestTooOld
            WriterBusy, StoreFull, and what the part's `check` and `apply` raise.
        """

        def change(batch: WriteBatch, record: TransactionRecord) -> None:
            part.check(batch, record)
            part.apply(batch, record, commits=False)

        if self.is_abandoned:
            self._abort_abandoned(timeout_s)
            return
        self._handle.run_batch(change, part.settle, timeout_s)
        self.leave_watch()

    def abandon(self) -> None:
        """Leave the abort to the watch, or to a producer that goes on outside of the transaction, if it is open."""
        handle = self._handle
        if handle.ended is None and not handle.is_committed:
            self.is_abandoned = True
            self.is_watched = self._flusher.watch(self, 0)

    def _abort_abandoned(self, timeout_s: float | None) -> None:
        handle, self.is_watched = self._handle, True
        if handle.state is TransactionState.OPEN:
            handle.abort("an interrupt cut off the end of its block", timeout_s)
        self.is_abandoned = False
        self.forget_failure()

    def locate(self, buffered: BufferedBatch) -> None:
        """Store the buffered messages for a receipt that is looked at, or raise the reason why that is impossible.

        Raises:
            TxnctlError: as `store`.
        """
        with self._handle.lock:
            self._handle.resolve()
            if buffered.entries is not None:
                return
            self.enter()
            if self._buffers.outbox.is_empty:
                self._handle.check_open()
            else:
                self.store(self._buffers.outbox)

    def watch_outbox(self) -> bool:
        """Have the outbox, empty as yet, watched from now on; False if the process may have no more threads."""
        outbox = self._buffers.outbox
        outbox.since_ns = self._handle.connection.clock.boot_ns()
        self.is_watched = self._flusher.watch(self, outbox.since_ns)
        return self.is_watched

    def leave_watch(self) -> None:
        """End the watch, if the outbox is empty."""
        if self.is_watched and self._buffers.outbox.is_empty:
            self._flusher.leave(self)
            self.is_watched = False

    def hand_over(self) -> None:
        """End the watch: a group has the commit in its queue, and is watched itself."""
        if self.is_watched:
            self._flusher.leave(self)
            self.is_watched = False

    def write_overdue(self) -> None:
        """Store messages that were buffered for too long; the next operation raises a failure."""
        if not self._handle.lock.acquire(blocking=False):
            return
        try:
            if self._handle.queued is not None:
                return
            self._handle.resolve()
            if self.is_abandoned:
                self._abort_abandoned(_OVERDUE_WAIT_S)
            elif self._buffers.outbox.is_empty:
                self.leave_watch()
            else:
                self.store(self._buffers.outbox, _OVERDUE_WAIT_S)
        except WriterBusy as error:
            self._note_busy(error)
        except TxnctlError as error:
            self.fail(error)
        finally:
            self._handle.lock.release()

    def fail(self, error: TxnctlError) -> None:
        """Keep an error for the next operation of the transaction, and watch no longer."""
        self.failure = error
        self._flusher.leave(self)

    def raise_failure(self) -> None:
        """Raise the error of the watch once, if there is one.

        Raises:
            TxnctlError
        """
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def forget_failure(self) -> None:
        """The transaction is aborted: no failure matters any more."""
        self.failure = None
        self.leave_watch()

    def _note_busy(self, error: WriterBusy) -> None:
        """Tell of a wait for the writer gate as for any wait: once, after a second."""
        connection, since_ns = self._handle.connection, self._buffers.outbox.since_ns
        waited_s, holder = (connection.clock.boot_ns() - since_ns) / 1e9, error.details.get("holder")
        if waited_s < LOCK_NOTE_S or self._noted_ns == since_ns or holder is None:
            return
        self._noted_ns = since_ns
        if connection.on_wait is not None:
            connection.on_wait(holder, waited_s)

    def forked(self) -> None:
        """Drop the messages, which belong to the parent: this is the child of a fork."""
        self._handle.forked()
        self._buffers.outbox.discard()
