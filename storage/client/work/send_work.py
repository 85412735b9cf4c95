"""What one serializable transaction sends, as its process holds it.

One that is attached to a process keeps its messages there and stores them in the one store transaction of its flush or
commit: one fsync, however many producers and topics (docs/decisions/0017). They are written sooner when they are many,
when somebody asks for the transaction's number or where a message went, and about a second after the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from storage.client.append import Appender
from storage.client.work.handle import LazyTransaction
from storage.client.work.outbox import KeptSends, WritingSends, kept_bytes
from storage.disk.view import WriteBatch
from storage.errors import TxnctlError, WriterBusy
from storage.limits import LOCK_NOTE_S, WRITE_BYTES_TARGET
from storage.process.background import KEPT_NS
from storage.topic.entry import Columns
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.values.receipt import BatchReceipt
from storage.values.txn_state import TransactionState

T = TypeVar("T")

_OVERDUE_WAIT_S = 0.2
"""How long the watch waits for the writer gate before it comes again."""


class SendWork(LazyTransaction):
    """See the module. For one thread at a time, beside the watch over what is kept."""

    def _keep_nothing(self) -> None:
        super()._keep_nothing()
        self._flusher = self._connection.environment.flusher
        self._sends = KeptSends()
        self._writing: WritingSends | None = None
        self._failure: TxnctlError | None = None
        self._is_shared = not self._begun.attached
        self._noted_ns = -1

    @property
    def keeps_sends(self) -> bool:
        """Whether messages may be kept for it: it is attached, and nobody else knows its number."""
        return not self._is_shared

    def keep(
        self, appender: Appender, columns: Columns, sizes: Sequence[int], ids: Sequence[int] | None
    ) -> BatchReceipt | None:
        """Keep messages that were checked; None if they have to be stored at once.

        Raises:
            TransactionNotOpen, TransactionTimedOut, and as `write_sends` if others are in the way.
        """
        with self._lock:
            self._enter()
            self.see_usable()
            size = kept_bytes(sizes)
            if self._sends.bytes + size > WRITE_BYTES_TARGET:
                self.write_sends()
                if size > WRITE_BYTES_TARGET:
                    return None
            if not self._sends:
                self._sends.since_ns = self._connection.clock.boot_ns()
                if not self._flusher.watch(self, self._sends.since_ns):
                    return None
            return self._sends.add(appender, columns, sizes, ids, self._locate)

    def write_sends(self) -> None:
        """Store what is kept of messages.

        Raises:
            ProducerFenced, LostConflict, TransactionNotOpen, TransactionTimedOut: it is aborted.
            SequenceConflict, ProducerBusy, TopicNotFound, WriterBusy, StoreFull: nothing was stored, and all is kept.
        """
        with self._lock:
            self._connection.check_writable()
            self._raise_failure()
            if self._sends:
                self._enter()
                self._store()

    def write_before_others(self) -> None:
        """Store what is kept, for a producer that goes on outside the transaction, or leaves.

        If it cannot be stored, that is the business of who uses the transaction next.

        Raises:
            WriterBusy
        """
        with self._lock:
            try:
                if self._sends:
                    self._store()
            except WriterBusy:
                raise
            except TxnctlError as error:
                self._fail(error)

    def _fail(self, error: TxnctlError) -> None:
        self._failure = error
        self._flusher.leave(self)

    def _locate(self) -> None:
        """Store what is kept for somebody who wants to know where it went, or say why it never will be."""
        with self._lock:
            if self._look_back():
                return
            self._enter()
            if self._sends:
                self._store()
            else:
                self.see_usable()

    def _store(self, timeout_s: float | None = None) -> None:
        def change(batch: WriteBatch, record: TransactionRecord) -> None:
            self._begin_sends(batch, record)
            self._append_sends()
            records.save(batch, record)

        self._write(change, timeout_s)
        self._settle_sends()

    def number(self) -> int:
        """Its number, for this process to name it by: its record has what it has sent and done.

        Raises:
            as `write_sends`
        """
        with self._lock:
            is_behind = self._sends or (self.txn_id and self._uses_tables and not self._is_marked)
            if is_behind and self.state is TransactionState.OPEN:
                self._store()
            self.materialize()
            return self.txn_id

    # Within a batch

    def _begin_sends(self, batch: WriteBatch, record: TransactionRecord) -> None:
        """See that everybody who has sent may publish.

        Raises:
            ProducerFenced: one may not; the transaction is doomed, durably.
            ProducerBusy, TopicNotFound
        """
        if self._sends:
            self._writing = self._sends.begin(batch, record)
            self._writing.check()

    def _append_sends(self) -> None:
        if self._writing is not None:
            self._writing.append()

    # After a batch

    def _in_doubt(self, write: Callable[[], T]) -> T:
        self._look_back()
        try:
            return super()._in_doubt(write)
        except BaseException as error:
            if self._sends:
                if self._writing is not None:
                    self._writing.note(error)
                with suppress(TxnctlError):
                    self._resolve()
            raise

    def _look_back(self) -> bool:
        """After a write that was interrupted, maybe behind its commit: whether all that was kept is stored.

        Nothing may be kept beside it before that is known.
        """
        if self._writing is None:
            return False
        self._find_tried()
        return self._resolve()

    def _resolve(self) -> bool:
        """After a write that came to no good end: is what was kept stored, or can it never be? Whether it is.

        The record counts the messages, and is written with them.
        """
        writing, record = self._writing, None
        if self._sends and self.txn_id:
            with self._connection.view() as view:
                record = records.get(view, self.txn_id)
        if writing is not None and record is not None and record.messages == writing.total:
            writing.settle()
            self._forget_sends()
            return True
        if record is not None and record.state is not TransactionState.OPEN:
            self._forget_sends()
        self._writing = None
        return False

    def _settle_sends(self) -> None:
        """All is stored that was kept."""
        if self._writing is not None:
            self._writing.settle()
        self._forget_sends()

    def _forget_sends(self) -> None:
        if self._sends:
            # In this order: what was interrupted in between is not stored again.
            self._sends.forget()
            self._flusher.leave(self)
        self._writing = None

    # The watch

    def write_overdue(self) -> None:
        """Store what was kept for too long. A failure is told to who uses the transaction next."""
        if not self._lock.acquire(blocking=False):
            return  # it is being used, and looks by itself
        try:
            self._look_back()
            if self._sends:
                self._store(_OVERDUE_WAIT_S)
            else:
                self._flusher.leave(self)
        except WriterBusy as error:
            self._note_busy(error)
        except TxnctlError as error:
            self._fail(error)
        finally:
            self._lock.release()

    def _note_busy(self, error: WriterBusy) -> None:
        """Who is told of waits for the writer gate is told of this one too: once, after a second."""
        since_ns, holder = self._sends.since_ns, error.details.get("holder")
        waited_s = (self._connection.clock.boot_ns() - since_ns) / 1e9
        if waited_s < LOCK_NOTE_S or self._noted_ns == since_ns or holder is None:
            return
        self._noted_ns = since_ns
        if self._connection.on_wait is not None:
            self._connection.on_wait(holder, waited_s)

    def forked(self) -> None:
        """This is the child of a fork: what is kept is the parent's."""
        super().forked()
        self._sends = KeptSends()
        self._writing = None

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _enter(self) -> None:
        """What failed meanwhile is told, what is overdue is stored.

        Raises:
            as `write_sends`
        """
        self._raise_failure()
        super()._enter()
        self._look_back()
        if self._sends and self._connection.clock.boot_ns() - self._sends.since_ns >= KEPT_NS:
            self._store()
