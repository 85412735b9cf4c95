"""The work of one serializable transaction in its process: a handle, an outbox, a write set and a read set.

A transaction attached to the process buffers messages and puts, and writes both in the store transaction of the flush
or commit: one fsync, however many producers, topics and keys (docs/decisions/0015, 0017, 0025). A large number of
messages is written sooner; so are messages whose receipt is looked at, and messages buffered for about a second. A
transaction that a process knows only by its number buffers nothing: its puts are placed as intents at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from storage.client.append import Appender, Outgoing
from storage.client.work.beginning import Beginning, BeginRequest
from storage.client.work.buffers import Buffers
from storage.client.work.handle import TransactionHandle
from storage.client.work.outbox import Outbox
from storage.client.work.read_set import ReadSet, Rows
from storage.client.work.write_behind import WriteBehind
from storage.client.work.write_set import WriteSet
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch
from storage.errors import TxnctlError, WriterBusy
from storage.limits import BUFFER_KEYS_MAX
from storage.table.arbiter import Arbiter
from storage.table.catalogue import TableEntry
from storage.table.key_range import KeyRange
from storage.table.visibility import Version
from storage.table.write import Write
from storage.txn import record as records
from storage.txn.coordinator import Coordinator
from storage.txn.record import TransactionRecord
from storage.values.receipt import BatchReceipt
from storage.values.txn_state import TransactionState

T = TypeVar("T")


class Work:
    """See the module. For one thread at a time, beside the watch over buffered messages."""

    def __init__(self, handle: TransactionHandle, *, buffers: bool) -> None:
        """Args:
        buffers: whether messages and puts are buffered until a flush.
        """
        self._handle = handle
        self._connection = handle.connection
        outbox = Outbox() if buffers else Outbox(bytes_max=0)
        keys_max = BUFFER_KEYS_MAX if buffers else 0
        self._buffers = Buffers(outbox, WriteSet(handle.connection, handle.coordinator, keys_max))
        self._write_behind = WriteBehind(handle, self._buffers)
        self._read_set = ReadSet(handle, self._buffers.merged, marks_first=not buffers)

    def _new_write_set(self, **capacity: int) -> WriteSet:
        return WriteSet(self._connection, self._handle.coordinator, **capacity)

    # What is known

    @property
    def txn_id(self) -> int:
        """The transaction's number; 0 as long as there is no record."""
        return self._handle.txn_id

    @property
    def txn_id_in_doubt(self) -> int:
        """The number, also of a record of which this process does not know whether it is committed; 0: none."""
        doubt = self._handle.doubt
        return self._handle.txn_id or (0 if doubt is None else doubt.txn_id)

    @property
    def state(self) -> TransactionState:
        """The transaction's state now."""
        return self._handle.state

    @property
    def message_bound(self) -> int | None:
        """The timestamp, if the transaction has used a table, in this process or by its number elsewhere."""
        handle = self._handle
        if handle.txn_id and not handle.uses_tables:
            with self._connection.view() as view:
                return handle.timestamp if records.get(view, handle.txn_id).uses_tables else None
        return handle.timestamp if handle.uses_tables else None

    def known_timestamp(self) -> int:
        """The timestamp; in a store without tables one is issued now, with the record.

        Raises:
            WriterBusy, StoreFull
        """
        if not self._handle.timestamp:
            self._handle.materialise()
        return self._handle.timestamp

    def number(self) -> int:
        """The number, for this process to name the transaction by: buffered messages are stored, puts stay buffered.

        Raises:
            as `flush_messages`
        """
        handle, outbox = self._handle, self._buffers.outbox
        with handle.lock:
            if (handle.is_mark_due or not outbox.is_empty) and handle.state is TransactionState.OPEN:
                self._write_behind.store(outbox)
            handle.materialise()
            return handle.txn_id

    def share(self) -> int:
        """The number, for any process to use the transaction by: from now on nothing is buffered in this process.

        Raises:
            as `flush_buffers`
        """
        with self._handle.lock:
            if not self._buffers.is_empty and self.state is TransactionState.OPEN:
                self.flush_buffers()
            txn_id = self.number()
            self._buffers.discard()
            self._write_behind.leave_watch()
            self._buffers.outbox, self._buffers.write_set = Outbox(0), self._new_write_set(keys_max=0)
            self._read_set.marks_first = True
            return txn_id

    # Messages

    def buffer_messages(self, appender: Appender, outgoing: Outgoing) -> BatchReceipt | None:
        """Buffer checked messages; None if the messages have to be stored at once.

        Raises:
            TransactionNotOpen, TransactionTimedOut
            as `flush_messages`, if messages buffered before are in the way
        """
        outbox = self._buffers.outbox
        with self._handle.lock:
            if not outbox.has_room(outgoing):
                self.flush_messages()
                if not outbox.has_room(outgoing):
                    return None
            self._write_behind.enter()
            self._handle.check_open()
            if outbox.is_empty and not self._write_behind.watch_outbox():
                return None
            return outbox.add(appender, outgoing, self._write_behind.locate)

    def flush_messages(self) -> None:
        """Store the buffered messages.

        Raises:
            ProducerFenced, LostConflict, TransactionNotOpen, TransactionTimedOut: the transaction is aborted.
            SequenceConflict, ProducerBusy, TopicNotFound, WriterBusy, StoreFull: nothing was stored, all is buffered.
        """
        with self._handle.lock:
            self._connection.check_writable()
            self._write_behind.raise_failure()
            if self._handle.queued is not None:
                self._handle.resolve()
            if not self._buffers.outbox.is_empty:
                self._write_behind.enter()
                self._write_behind.store(self._buffers.outbox)

    def flush_before_producer_leaves(self) -> None:
        """Store the buffered messages, for a producer that goes on outside the transaction, or closes.

        If the messages cannot be stored, the next operation of the transaction raises the reason.

        Raises:
            WriterBusy
        """
        with self._handle.lock:
            queued = self._handle.queued
            if queued is not None:
                if not queued.is_in(self._connection.queue):
                    queued.flush_queue()
                return  # The queue of this thread keeps the order.
            try:
                if not self._buffers.outbox.is_empty:
                    self._write_behind.store(self._buffers.outbox)
            except WriterBusy:
                raise
            except TxnctlError as error:
                self._write_behind.fail(error)

    def run_action(self, action: Callable[[WriteBatch, int], T]) -> T:
        """Run an action that names the transaction, in a batch that makes the record if there is none.

        Raises:
            TransactionNotOpen, TransactionTimedOut, RequestTooOld, and what `action` raises.
        """

        def change(batch: WriteBatch, record: TransactionRecord) -> T:
            return action(batch, record.txn_id)

        with self._handle.lock:
            self._write_behind.enter()
            return self._handle.run_batch(change)

    # Tables

    def read_version(self, table: TableEntry, key: bytes) -> Version | None:
        """The version that the transaction sees under a key: its own write, or the newest version at its timestamp.

        Raises:
            LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut, TableNotFound
        """
        handle = self._handle
        write_set = self._buffers.write_set
        own = None if write_set.is_empty else write_set.find(table.table_id, key)
        with handle.lock:
            self._write_behind.enter()
            if own is None:
                return self._read_set.read_key(table, key)
            handle.check_open()
            return None if own.value is None else Version(handle.timestamp, handle.txn_id, own.value)

    def read_pages(self, table: TableEntry, key_range: KeyRange, limit: int | None) -> Iterator[Rows]:
        """The rows of a range that the transaction sees, a page at a time, in the direction of the range.

        Raises:
            as `read_version`
        """
        rest: KeyRange | None = key_range
        left = limit
        while rest is not None and left != 0:
            with self._handle.lock:
                self._write_behind.enter()
                rows, rest = self._read_set.read_page(table, key_range, rest, left)
            left = None if left is None else left - len(rows)
            yield rows

    def write_key(self, table: TableEntry, key: bytes, value: bytes | None) -> int:
        """Write a key, or with None delete it; the version of the write.

        Raises:
            InvalidValue: of key or value.
            WriteTooOld, and as `read_version`
        """
        write, handle, write_set = Write(table, key, value), self._handle, self._buffers.write_set
        with handle.lock:
            self._write_behind.enter()
            if not write_set.has_room(write):
                # A write that is refused is not buffered, so the writes before it make room first.
                if not write_set.is_empty:
                    self._write_behind.store(self._buffers)
                if write_set.is_immediate:
                    at_once = self._new_write_set()
                    at_once.add(write)
                    self._write_behind.store(at_once)
                    handle.uses_tables = True
                    return handle.timestamp
            if self._read_set.needs_write_before_put():
                handle.run_batch(self._read_set.make_ready, share=ReserveShare.PART)
            handle.uses_tables = True
            write_set.add(write)
            return handle.timestamp

    def write_keys(self, table: TableEntry, rows: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Write many keys, in store transactions of a bounded size; how many.

        Raises:
            as `write_key`
        """
        count, before = 0, self._buffers.write_set
        if before.is_immediate:
            # Intents are placed a buffer at a time, even where nothing may stay buffered behind this call.
            self._buffers.write_set = self._new_write_set()
        try:
            for key, value in rows:
                self.write_key(table, key, value)
                count += 1
            if before.is_immediate:
                self.flush_buffers()
        finally:
            if before.is_immediate:
                self._buffers.write_set = before
        return count

    # Ending

    def flush_buffers(self) -> None:
        """Store the buffered messages and the intents of the buffered puts, in one store transaction.

        Raises:
            as `write_key`, and as `flush_messages`
        """
        with self._handle.lock:
            self._write_behind.enter()
            if not self._buffers.is_empty:
                self._write_behind.store(self._buffers)

    def commit(self, subject: object = None, *, may_queue: bool = False) -> bool:
        """Commit, with all that is buffered, in one store transaction; False if the transaction was committed before.

        Args:
            subject: the transaction as the application holds it.
            may_queue: within a group of this thread only queue the commit, and return True.

        Raises:
            WriteTooOld, LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut, and as `flush_messages`
        """
        handle, buffers = self._handle, self._buffers
        with handle.lock:
            if self._write_behind.failure is not None:
                self._write_behind.raise_failure()
            if handle.doubt is not None or handle.queued is not None:
                handle.resolve()
            is_first = handle.commit_without_record() if buffers.is_empty else None
            if is_first is not None:
                return is_first
            if may_queue and not self._connection.reads_at_once and self._queue_commit(subject):
                return True
            ended = handle.commit_batch(self._prepare_commit, buffers.settle)
            if self._write_behind.is_watched:
                self._write_behind.leave_watch()
            return not ended.already

    def _queue_commit(self, subject: object) -> bool:
        """Leave the commit to the queue of a group; False for a repeated one, and outside of a group of this thread."""
        from storage.client.work.end_queue import queue_of
        from storage.client.work.queued_commit import QueuedCommit

        queue = queue_of(self._connection)
        if queue is None or self._handle.is_committed:
            return False
        outcome, change = self._handle.commit_change(self._prepare_commit, self._buffers.settle)
        end = QueuedCommit(self._handle, self._buffers, queue, change, outcome)
        end.subject = subject
        self._write_behind.hand_over()
        self._handle.queued = end
        queue.enqueue(end)
        return True

    def _prepare_commit(self, batch: WriteBatch, record: TransactionRecord) -> None:
        self._buffers.check(batch, record)
        if record.uses_tables and self._buffers.write_set.is_empty:
            Arbiter(batch, self._handle.coordinator, self._connection.identity).check_window(record)
        self._buffers.apply(batch, record, commits=True)

    def abort(self, reason: str | None) -> None:
        """Abort; a transaction without a record leaves nothing.

        A refused abort drops nothing, so that a commit afterwards commits the whole transaction.

        Raises:
            TransactionNotOpen: the transaction was committed.
            WriterBusy
        """
        with self._handle.lock:
            self._handle.abort(reason)
            self._write_behind.forget_failure()

    def abandon(self) -> None:
        """Have the transaction aborted soon, if it is open; for a finalizer, so nothing is written here."""
        self._write_behind.abandon()


def begin_work(connection: Connection, coordinator: Coordinator, request: BeginRequest) -> Work:
    """Begin a transaction attached to this process, without a commit if a timestamp can be issued without one.

    Raises:
        InvalidValue, InvalidName
        StoreClosed, StoreInvalid, WriterBusy
    """
    beginning = Beginning.now(connection, coordinator, request)
    handle = TransactionHandle(connection, coordinator, beginning)
    if beginning.started is None:
        handle.materialise()
    return Work(handle, buffers=True)


def work_by_record(connection: Connection, coordinator: Coordinator, record: TransactionRecord) -> Work:
    """The work of a transaction that a caller names by number; nothing is buffered."""
    request = BeginRequest(record.timeout_ms, record.labels, attached=False)
    beginning = Beginning(connection, coordinator, request, connection.environment)
    return Work(TransactionHandle(connection, coordinator, beginning, record.txn_id), buffers=False)
