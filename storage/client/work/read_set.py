"""What one serializable transaction reads of tables: recorded, with its own writes that are not applied yet among it.

Invariant 12: a read is recorded, and its view is opened, inside one and the same writer gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from storage.client.work.handle import Unready
from storage.client.work.send_work import SendWork
from storage.disk.read_cache import ReadCache
from storage.disk.view import ReadView, WriteBatch
from storage.limits import PAGE_ENTRIES
from storage.table import read as reading, retention
from storage.table.catalogue import TableEntry, check_exists
from storage.table.key_range import KeyRange
from storage.table.read import MustPush
from storage.table.visibility import OPEN, Version
from storage.table.write import Arbiter, Write, begin_use, check_window
from storage.txn import record as records
from storage.txn.options import TransactionIsolation
from storage.txn.record import TransactionRecord

T = TypeVar("T")
Found = list[tuple[bytes, Version]]
Page = tuple[Found, KeyRange | None]
"""Rows, and what is left of the range; None if it was read to its end."""

Note = Callable[[ReadView, ReadCache], None]
"""Records in the cache what is read in a view that was opened inside the same gate."""


class RecordedReads(SendWork):
    """See the module. For one thread at a time, beside the watch over what is kept."""

    def _keep_nothing(self) -> None:
        super()._keep_nothing()
        self._buffer: dict[tuple[int, bytes], Write] = {}
        self._buffered_bytes = 0

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
                return None if own.value is None else Version(self.timestamp, self.txn_id, own.value)
        table_id = table.table_id

        def note(_view: ReadView, cache: ReadCache) -> None:
            cache.record_key(table_id, key, self.timestamp, self.txn_id)

        def look(view: ReadView) -> Version | None:
            pick = reading.at_timestamp(view, table_id, self.timestamp, self.txn_id)
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
            cache.record_range(table.table_id, wanted.start, wanted.end, self.timestamp, self.txn_id)

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
            cache.record_range(table.table_id, done.start, done.end, self.timestamp, self.txn_id)
            pages[:] = [(found, rest)]

        return self._recorded(table, note, lambda _: pages[0])

    def _rows(self, view: ReadView, table: TableEntry, part: KeyRange, limit: int) -> Page:
        """Rows of a view, with the transaction's own buffered writes among them."""
        pick = reading.at_timestamp(view, table.table_id, self.timestamp, self.txn_id)
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
                merged[key] = Version(self.timestamp, self.txn_id, write.value)
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
        if not cache.is_valid(view.superblock):
            raise Unready
        if self.txn_id:
            record = records.get(view, self.txn_id)
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
        if not batch.read_cache.is_valid(batch.superblock):
            batch.read_cache.start_anew(batch.superblock)
        records.save(batch, record)

    def _push(self, batch: WriteBatch, record: TransactionRecord, found: MustPush, table: TableEntry) -> None:
        begin_use(batch, self._coordinator, record, self._connection.owner)
        Arbiter(batch, self._coordinator, self._connection.owner).push_for_read(record, found, table.name)
        records.save(batch, record)
