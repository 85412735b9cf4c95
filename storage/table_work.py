"""What one serializable transaction does in tables, as its process holds it.

A transaction of one shell command after the other writes an intent with each put. One that is attached to a process
keeps its puts there, reads them back from there, and applies them with all checks in the one store transaction of its
commit, with the messages that it keeps: no intents, one fsync.

Invariant 12: a read is recorded, and its view is opened, inside one and the same writer gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from storage.connection import Connection
from storage.lazy_transaction import Begun, Unready
from storage.limits import BUFFER_BYTES_MAX, BUFFER_KEYS_MAX, PAGE_ENTRIES
from storage.read_cache import ReadCache
from storage.send_work import SendWork
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
Page = tuple[Found, KeyRange | None]
"""Rows, and what is left of the range; None if it was read to its end."""

Note = Callable[[ReadView, ReadCache], None]
"""Records in the cache what is read in a view that was opened inside the same gate."""


class TableWork(SendWork):
    """See the module. For one thread at a time, beside the watch over what is kept."""

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

    # Reading

    def read(self, table: TableEntry, key: bytes) -> Version | None:
        """What the transaction sees under a key: its own write, or the newest version at its timestamp.

        Raises:
            LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut, TableNotFound
        """
        own = self._buffer.get((table.table_id, key))
        if own is not None:
            with self._lock:
                self._enter()
                self.see_usable()
                return None if own.value is None else Version(self.timestamp, self.least, own.value)
        table_id = table.table_id

        def note(_view: ReadView, cache: ReadCache) -> None:
            cache.record_key(table_id, key, self.timestamp, self.least)

        def look(view: ReadView) -> Version | None:
            pick = reading.at_timestamp(view, table_id, self.timestamp, self.least)
            return reading.one(view, table_id, key, pick)

        return self._recorded(table, note, look)

    def pages(self, table: TableEntry, wanted: KeyRange, limit: int | None) -> Iterator[Found]:
        """The rows of a range that the transaction sees, a page at a time, in the direction of the range.

        Nothing can come any more into what was read of the range that the transaction would have seen: all of it, or
        the part up to the last row where the limit is reached.

        Raises:
            as `read`
        """
        rest: KeyRange | None = wanted
        left = 1 << 62 if limit is None else limit
        while rest is not None and left > 0:
            if limit is None:
                found, rest = self._page(table, wanted, rest)
            else:
                found, rest = self._limited_page(table, wanted, rest, left)
            left -= len(found)
            yield found

    def _page(self, table: TableEntry, wanted: KeyRange, part: KeyRange) -> Page:
        """A page of a range that is read to its end: all of it is recorded with each."""

        def note(_view: ReadView, cache: ReadCache) -> None:
            cache.record_range(table.table_id, wanted.start, wanted.end, self.timestamp, self.least)

        return self._recorded(table, note, lambda view: self._rows(view, table, part, PAGE_ENTRIES))

    def _limited_page(self, table: TableEntry, wanted: KeyRange, part: KeyRange, left: int) -> Page:
        """A page of a range of which at most `left` rows are wanted.

        How far it is read shows only when it has been: so it is read inside the gate, in which it is recorded.
        """
        pages: list[Page] = []

        def note(view: ReadView, cache: ReadCache) -> None:
            found, rest = self._rows(view, table, part, min(left, PAGE_ENTRIES))
            if len(found) >= left:
                found = found[:left]
                rest = part.after(found[-1][0])
            done = wanted.without(rest)
            cache.record_range(table.table_id, done.start, done.end, self.timestamp, self.least)
            pages[:] = [(found, rest)]

        return self._recorded(table, note, lambda _: pages[0])

    def _rows(self, view: ReadView, table: TableEntry, part: KeyRange, limit: int) -> Page:
        """Rows of a view, with the transaction's own buffered writes among them."""
        pick = reading.at_timestamp(view, table.table_id, self.timestamp, self.least)
        found, rest = reading.page(view, table.table_id, part, pick, limit)
        return self._with_own(table.table_id, found, part, rest), rest

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
        with self._lock:
            self._enter()
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
                and self._may_use_tables(record)
                and record.isolation == TransactionIsolation.SERIALIZABLE.value
            )
            deadline_ns = record.deadline_ns
        else:
            is_usable, deadline_ns = self.timestamp > 0, self._deadline_ns()
        if not is_usable or view.now_ns >= deadline_ns or self.timestamp < retention.window_start(view):
            raise Unready
        check_exists(view, table)
        note(view, cache)

    def _may_use_tables(self, record: TransactionRecord) -> bool:
        """Whether its record need not be changed first: where nobody else uses it, its next change says so."""
        return record.uses_tables or (not self._is_shared and record.consumed <= record.timestamp)

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
        if not self.least:
            return not self.timestamp or self._is_unusable()
        with self._connection.view() as view:
            record = records.get(view, self.least)
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
            if self._ended is not None and not self.least:
                if self._ended is TransactionState.ABORTED:
                    self.materialize()
                else:
                    return None
            has_nothing = not (self.least or self._buffer or self._sends) and self._started is not None
            if has_nothing and self._is_in_time():
                self._ended = TransactionState.COMMITTED
                return None
            connection, writes = self._connection, list(self._buffer.values())
            ended = self._in_doubt(
                lambda: connection.write(lambda batch: self._commit_in(batch, writes), naming=self.least)
            )
            self._adopt(ended.record)
            self._forget()
            return ended

    def _commit_in(self, batch: WriteBatch, writes: list[Write]) -> Ended:
        coordinator, owner = self._coordinator, self._connection.owner
        # Whether it commits or is refused: the transaction is decided in this batch.
        made = None if self.least else self._make_record(batch, ends_here=True)

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

        return coordinator.commit(batch, made.least if made else self.least, owner, prepare, made)

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
            if not self.least:
                if self._ended is not TransactionState.COMMITTED:
                    self._drop()
                    self._ended = TransactionState.ABORTED
                    return
                self.materialize()
            least, owner = self.least, self._connection.owner
            self._connection.write(
                lambda batch: self._coordinator.abort(batch, least, owner, AbortReason.ASKED, reason),
                naming=least,
            )
            self._drop()

    def _drop(self) -> None:
        """What is kept is never written, and what failed of it is of no interest any more."""
        self._failure = None
        self._forget_sends()
        self._forget()


def _size(write: Write) -> int:
    return len(write.key) + len(write.value or b"")
