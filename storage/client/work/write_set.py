"""What one serializable transaction does in tables, as its process holds it: its writes, and how it ends.

A transaction of one shell command after the other writes an intent with each put. One that is attached to a process
keeps its puts there, reads them back from there, and applies them with all checks in the one store transaction of its
commit, with the messages that it keeps: no intents, one fsync.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from storage.client.work.read_set import RecordedReads
from storage.disk.view import WriteBatch
from storage.limits import BUFFER_BYTES_MAX, BUFFER_KEYS_MAX
from storage.table import retention
from storage.table.catalogue import TableEntry
from storage.table.visibility import OPEN
from storage.table.write import Write, Writing, begin_use, check_tables, check_window
from storage.txn import record as records
from storage.txn.coordinator import Ended
from storage.txn.record import TransactionRecord
from storage.values.txn_state import AbortReason, TransactionState


class TableWork(RecordedReads):
    """See the module. For one thread at a time, beside the watch over what is kept."""

    def share(self) -> None:
        """Let others use the transaction by its number: nothing of it is kept in this process from now on.

        Raises:
            as `flush`
        """
        with self._lock:
            if (self._buffer or self._sends) and self.state is TransactionState.OPEN:
                self.flush()
            self.number()
            self._forget()
            self._is_shared = True

    # Writing

    def write(self, table: TableEntry, key: bytes, value: bytes | None) -> int:
        """Write a key, or with None delete it; the version it gets.

        Raises:
            WriteTooOld, and as `read`
        """
        with self._lock:
            self._enter()
            written = Write(table.table_id, table.name, key, value)
            if self._is_shared:
                self._write(lambda batch, record: self._place(batch, record, [written]))
                self._uses_tables = True
                return self.timestamp
            if self._is_unready_to_write():
                self._write(self._make_ready)
            self._uses_tables = True
            self._buffer_write(key, written)
            return self.timestamp

    def _is_unready_to_write(self) -> bool:
        """Whether a batch has to say first that it cannot go on, or that it uses tables."""
        if not self.txn_id:
            return not self.timestamp or self._is_unusable()
        with self._connection.view() as view:
            record = records.get(view, self.txn_id)
            self.timestamp = record.timestamp
            is_over = record.state_code != OPEN or record.is_overdue(view.now_ns)
            return is_over or not self._may_use_tables(record)

    def _buffer_write(self, key: bytes, written: Write) -> None:
        """Keep a write; where there is no room for it, what is kept is written first: a refused put is not kept."""
        table_id = written.table_id
        is_full = (
            len(self._buffer) >= BUFFER_KEYS_MAX or self._buffered_bytes + _size(written) > BUFFER_BYTES_MAX
        )
        if is_full and self._buffer:
            self.flush()
        before = self._buffer.pop((table_id, key), None)
        if before is not None:
            self._buffered_bytes -= _size(before)
        self._buffer[table_id, key] = written
        self._buffered_bytes += _size(written)

    def write_many(self, table: TableEntry, found: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Write many keys, in store transactions of a bounded size; how many.

        Raises:
            as `write`
        """
        count, was_shared = 0, self._is_shared
        # Intents are placed a buffer at a time, also where nothing is kept beyond this call.
        self._is_shared = False
        try:
            for key, value in found:
                self.write(table, key, value)
                count += 1
            if was_shared:
                self.flush()
        finally:
            if was_shared:
                self._forget()
            self._is_shared = was_shared
        return count

    def flush(self) -> None:
        """Write the intents of what is buffered, and the messages that are kept, in one store transaction.

        Raises:
            as `write`, and as `write_sends`
        """
        with self._lock:
            self._enter()
            writes = list(self._buffer.values())
            if writes:
                self._write(lambda batch, record: self._place(batch, record, writes))
                self._forget()
            elif self._sends:
                self._store()

    def _place(self, batch: WriteBatch, record: TransactionRecord, writes: list[Write]) -> None:
        coordinator, owner = self._coordinator, self._connection.owner
        self._begin_sends(batch, record)
        check_tables(batch, writes)
        begin_use(batch, coordinator, record, owner)
        Writing(batch, coordinator, record, owner, self._between()).place(writes)
        records.save(batch, record)

    def _between(self) -> Callable[[], None] | None:
        """What is written once all puts have passed, and before they are."""
        return self._append_sends if self._sends else None

    def _forget(self) -> None:
        """What was kept of puts and messages is written, or dropped."""
        self._buffer.clear()
        self._buffered_bytes = 0
        self._settle_sends()

    # Ending

    def commit(self) -> Ended | None:
        """Commit, with what is kept, in one store transaction; None if there was nothing to write.

        Raises:
            WriteTooOld, LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut, and as `write_sends`
        """
        with self._lock:
            self._raise_failure()
            self._find_tried()
            if self._ended is not None and not self.txn_id:
                if self._ended is TransactionState.ABORTED:
                    self.materialize()
                else:
                    return None
            has_nothing = not (self.txn_id or self._buffer or self._sends) and self._started is not None
            if has_nothing and self._is_in_time():
                self._ended = TransactionState.COMMITTED
                return None
            connection, writes = self._connection, list(self._buffer.values())
            ended = self._in_doubt(
                lambda: connection.write(lambda batch: self._commit_in(batch, writes), naming=self.txn_id)
            )
            self._adopt(ended.record)
            self._forget()
            return ended

    def _commit_in(self, batch: WriteBatch, writes: list[Write]) -> Ended:
        coordinator, owner = self._coordinator, self._connection.owner
        # Whether it commits or is refused: the transaction is decided in this batch.
        made = None if self.txn_id else self._make_record(batch, ends_here=True)

        def prepare(record: TransactionRecord) -> None:
            self._begin_sends(batch, record)
            if writes:
                check_tables(batch, writes)
            if writes or self._uses_tables:
                begin_use(batch, coordinator, record, owner)
            if writes:
                Writing(batch, coordinator, record, owner, self._between()).commit(writes)
                return
            if record.uses_tables:
                check_window(batch, coordinator, record, owner)
            self._append_sends()

        return coordinator.commit(batch, made.txn_id if made else self.txn_id, owner, prepare, made)

    def _is_in_time(self) -> bool:
        with self._connection.view() as view:
            is_in_window = not self.timestamp or self.timestamp >= retention.window_start(view)
            return view.now_ns < self._deadline_ns() and is_in_window

    def abort(self, reason: str | None) -> None:
        """Abort; a transaction without a record leaves nothing.

        If that is refused, all is kept that was: what is committed later is the whole of it.

        Raises:
            TransactionNotOpen: it was committed.
            WriterBusy
        """
        with self._lock:
            self._connection.check_writable()
            self._find_tried()
            if not self.txn_id:
                if self._ended is not TransactionState.COMMITTED:
                    self._drop()
                    self._ended = TransactionState.ABORTED
                    return
                self.materialize()
            txn_id, owner = self.txn_id, self._connection.owner
            self._connection.write(
                lambda batch: self._coordinator.abort(batch, txn_id, owner, AbortReason.ASKED, reason),
                naming=txn_id,
            )
            self._drop()

    def _drop(self) -> None:
        """What is kept is never written, and what failed of it is of no interest any more."""
        self._failure = None
        self._forget_sends()
        self._forget()


def _size(write: Write) -> int:
    return len(write.key) + len(write.value or b"")
