"""What one serializable transaction does in tables, as its process holds it.

A transaction of one shell command after the other writes an intent with each put. One that is attached to a process
keeps its puts there, reads them back from there, and applies them with all checks in the one store transaction of its
commit: no intents, one fsync.

Invariant 12: a read is recorded before its view is opened, both inside the writer gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

from storage.connection import Connection
from storage.errors import TxnctlError
from storage.lazy_transaction import Begun, LazyTransaction, Unready
from storage.limits import BUFFER_BYTES_MAX, BUFFER_KEYS_MAX, PAGE_ENTRIES
from storage.read_cache import ReadCache
from storage.table import reading, retention
from storage.table.key_range import KeyRange
from storage.table.reading import MustPush
from storage.table.table import TableEntry, check_exists
from storage.table.visibility import OPEN, Version
from storage.table.writing import (
    Write,
    Writing,
    begin_use,
    check_tables,
    check_window,
    commit_in,
    push_for_read,
)
from storage.txn import record as records
from storage.txn.coordinator import Coordinator, Ended, Started
from storage.txn.record import TransactionRecord
from storage.txn_options import TransactionIsolation
from storage.txn_state import AbortReason, TransactionState
from storage.view import ReadView, WriteBatch

T = TypeVar("T")
Found = list[tuple[bytes, Version]]
Note = Callable[[ReadCache, int, int], None]
"""Records a read in the cache, given the reader's timestamp and number."""


class TableWork(LazyTransaction):
    """See the module. For one thread at a time."""

    def __init__(
        self,
        connection: Connection,
        coordinator: Coordinator,
        begun: Begun,
        least: int = 0,
        started: Started | None = None,
    ) -> None:
        super().__init__(connection, coordinator, begun, least, started)
        self._buffer: dict[tuple[int, bytes], Write] = {}
        self._buffered_bytes = 0
        self._is_shared = not begun.attached

    def share(self) -> None:
        """Let others use the transaction by its number: nothing of it is kept in this process from now on.

        Raises:
            as `flush`
        """
        self.materialize()
        if self._buffer and self.state is TransactionState.OPEN:
            self.flush()
        self._forget()
        self._is_shared = True

    # Reading

    def read(self, table: TableEntry, key: bytes) -> Version | None:
        """What the transaction sees under a key: its own write, or the newest version at its timestamp.

        Raises:
            LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut, TableNotFound
        """
        own = self._buffer.get((table.table_id, key))
        if own is not None:
            self._check_not_ended()
            if self._is_unusable():
                self._write(self._make_ready)
            return None if own.value is None else Version(self.timestamp, self.least, own.value)
        table_id = table.table_id

        def note(cache: ReadCache, timestamp: int, txn: int) -> None:
            cache.record_key(table_id, key, timestamp, txn)

        def look(view: ReadView) -> Version | None:
            pick = reading.at_timestamp(view, table_id, self.timestamp, self.least)
            return reading.one(view, table_id, key, pick)

        return self._recorded(table, note, look)

    def pages(self, table: TableEntry, wanted: KeyRange, limit: int | None) -> Iterator[Found]:
        """The rows of a range that the transaction sees, a page at a time, in the direction of the range.

        The whole range is recorded first: nothing can come into it any more that the transaction would have seen.

        Raises:
            as `read`
        """
        table_id, left = table.table_id, 1 << 62 if limit is None else limit
        rest: KeyRange | None = wanted

        def note(cache: ReadCache, timestamp: int, txn: int) -> None:
            cache.record_range(table_id, wanted.start, wanted.end, timestamp, txn)

        while rest is not None and left > 0:
            part, room = rest, min(left, PAGE_ENTRIES)

            def look(
                view: ReadView, part: KeyRange = part, room: int = room
            ) -> tuple[Found, KeyRange | None]:
                pick = reading.at_timestamp(view, table_id, self.timestamp, self.least)
                return reading.page(view, table_id, part, pick, room)

            found, rest = self._recorded(table, note, look)
            found = self._with_own(table_id, found, part, rest)[:left]
            left -= len(found)
            yield found

    def _with_own(self, table_id: int, found: Found, part: KeyRange, rest: KeyRange | None) -> Found:
        """A page with the transaction's buffered writes in it: those of the part of the range that it covers."""
        own = {
            key: write
            for (table, key), write in self._buffer.items()
            if table == table_id and part.has(key) and (rest is None or not rest.has(key))
        }
        if not own:
            return found
        merged = {key: version for key, version in found if key not in own}
        for key, write in own.items():
            if write.value is not None:
                merged[key] = Version(self.timestamp, self.least, write.value)
        return sorted(merged.items(), reverse=part.reverse)

    def _recorded(self, table: TableEntry, note: Note, look: Callable[[ReadView], T]) -> T:
        """Record a read, look, and push what stands in the way until nothing does."""
        self._check_not_ended()
        while True:
            try:
                with self._connection.recorded_view(lambda view: self._admit(view, table, note)) as view:
                    result = look(view)
                self._uses_tables = True
                return result
            except Unready:
                self._write(self._make_ready)
            except MustPush as found:
                self._write(partial(self._push, found=found, table=table))

    def _admit(self, view: ReadView, table: TableEntry, note: Note) -> None:
        """Inside the gate: see that the transaction may read, and record what."""
        cache = self._connection.environment.read_cache
        if not cache.is_valid(view.head):
            raise Unready
        if self.least:
            record = records.get(view, self.least)
            self.timestamp = record.timestamp
            is_usable = (
                record.state_code == OPEN
                and record.uses_tables
                and record.isolation == TransactionIsolation.SERIALIZABLE.value
            )
            deadline_ns = record.deadline_ns
        else:
            is_usable, deadline_ns = True, self._deadline_ns()
        if not is_usable or view.now_ns >= deadline_ns or self.timestamp < retention.window_start(view):
            raise Unready
        check_exists(view, table)
        note(cache, self.timestamp, self.least)

    def _make_ready(self, batch: WriteBatch, record: TransactionRecord) -> None:
        """Write what a read waits for, or find why it can never be."""
        begin_use(batch, self._coordinator, record, self._connection.owner)
        check_window(batch, self._coordinator, record, self._connection.owner)
        if not batch.read_cache.is_valid(batch.head):
            batch.read_cache.start_anew(batch.head)
        records.save(batch, record)

    def _push(self, batch: WriteBatch, record: TransactionRecord, found: MustPush, table: TableEntry) -> None:
        begin_use(batch, self._coordinator, record, self._connection.owner)
        push_for_read(batch, self._coordinator, self._connection.owner, record, found, table.name)
        records.save(batch, record)

    # Writing

    def write(self, table: TableEntry, key: bytes, value: bytes | None) -> int:
        """Write a key, or with None delete it; the version it gets.

        Raises:
            WriteTooOld, and as `read`
        """
        self._check_not_ended()
        written = Write(table.table_id, table.name, key, value)
        if self._is_shared:
            self._write(lambda batch, record: self._place(batch, record, [written]))
            self._uses_tables = True
            return self.timestamp
        if self._is_unusable() or (self.least and not self._uses_tables):
            self._write(self._make_ready)
        self._uses_tables = True
        before = self._buffer.pop((table.table_id, key), None)
        if before is not None:
            self._buffered_bytes -= _size(before)
        self._buffer[table.table_id, key] = written
        self._buffered_bytes += _size(written)
        if len(self._buffer) >= BUFFER_KEYS_MAX or self._buffered_bytes >= BUFFER_BYTES_MAX:
            self.flush()
        return self.timestamp

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

    def _is_unusable(self) -> bool:
        """Whether it is not open, or overdue: then an operation of the coordinator says why."""
        if not self.least:
            return self._connection.clock.boot_ns() >= self._boot_deadline_ns
        with self._connection.view() as view:
            record = records.get(view, self.least)
            return record.state_code != OPEN or view.now_ns >= record.deadline_ns

    def flush(self) -> None:
        """Write the intents of what is buffered.

        Raises:
            as `write`
        """
        self._check_not_ended()
        writes = list(self._buffer.values())
        if writes:
            self._write(lambda batch, record: self._place(batch, record, writes))
            self._forget()

    def _place(self, batch: WriteBatch, record: TransactionRecord, writes: list[Write]) -> None:
        check_tables(batch, writes)
        begin_use(batch, self._coordinator, record, self._connection.owner)
        Writing(batch, self._coordinator, record, self._connection.owner).place(writes)
        records.save(batch, record)

    def _forget(self) -> None:
        self._buffer.clear()
        self._buffered_bytes = 0

    # Ending

    def commit(self) -> Ended | None:
        """Commit, with what is buffered, in one store transaction; None if there was nothing to write.

        Raises:
            WriteTooOld, LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut
        """
        if self._ended is not None and not self.least:
            if self._ended is TransactionState.ABORTED:
                self.materialize()
            else:
                return None
        writes = list(self._buffer.values())
        if not self.least and not writes and self._started is not None and self._is_in_time():
            self._ended = TransactionState.COMMITTED
            return None
        owner = self._connection.owner

        def change(batch: WriteBatch) -> Ended:
            # Whether it commits or is refused: the transaction is decided in this batch.
            record = None if self.least else self._make_record(batch, ends_here=True)
            least = self.least if record is None else record.least
            return commit_in(self._coordinator, batch, least, owner, writes, record)

        try:
            ended = self._connection.write(change, naming=self.least)
        except BaseException:
            # A refusal that was durable, or an interrupt after the commit.
            with suppress(TxnctlError):
                self._find_tried()
            raise
        self._adopt(ended.record)
        self._forget()
        return ended

    def _is_in_time(self) -> bool:
        with self._connection.view() as view:
            is_in_window = self.timestamp >= retention.window_start(view)
            return view.now_ns < self._deadline_ns() and is_in_window

    def abort(self, reason: str | None) -> None:
        """Abort; a transaction without a record leaves nothing.

        Raises:
            TransactionNotOpen: it was committed.
        """
        self._forget()
        if not self.least:
            if self._ended is not TransactionState.COMMITTED:
                self._ended = TransactionState.ABORTED
                return
            self.materialize()
        least, owner = self.least, self._connection.owner
        self._connection.write(
            lambda batch: self._coordinator.abort(batch, least, owner, AbortReason.ASKED, reason),
            naming=least,
        )

    def _check_not_ended(self) -> None:
        """A transaction that ended without a record is given one, so that the error names it."""
        if self._ended is not None:
            self.materialize()
            self._write(_nothing)


def _nothing(_batch: WriteBatch, _record: TransactionRecord) -> None:
    """Only see that the transaction is open."""


def _size(write: Write) -> int:
    return len(write.key) + len(write.value or b"")
