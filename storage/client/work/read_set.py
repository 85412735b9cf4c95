"""The reads of a serializable transaction in tables: each recorded, so that no later write can come before it.

Invariant 12: a read is recorded, and its view is opened, inside one and the same writer gate. The transaction's own
buffered writes are merged into every page.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from storage.client.work.beginning import NeedsWrite
from storage.client.work.handle import TransactionHandle
from storage.disk.reserve import ReserveShare
from storage.disk.shared_state import ReadCache, ReadsDamaged
from storage.disk.view import ReadView, WriteBatch
from storage.limits import PAGE_ENTRIES
from storage.table import read as reading, retention
from storage.table.arbiter import Arbiter
from storage.table.catalogue import TableEntry, check_exists
from storage.table.key_range import KeyRange
from storage.table.read import MustPush
from storage.table.visibility import OPEN, Row, Version
from storage.txn import record as records
from storage.txn.options import TransactionIsolation
from storage.txn.record import TransactionRecord

T = TypeVar("T")
Rows = list[Row]
Page = tuple[Rows, KeyRange | None]
"""Rows, and the rest of the range; None if the page reaches the end."""

Note = Callable[[ReadView, ReadCache], None]
"""Records a read in the cache, given a view that was opened inside the same gate."""


class Merge(Protocol):
    """Merges buffered writes into a page; see `WriteSet.merged`."""

    def __call__(
        self, table_id: int, rows: Rows, part: KeyRange, rest: KeyRange | None, version: tuple[int, int]
    ) -> Rows: ...


class ReadSet:
    """See the module.

    Attributes:
        marks_first: the record says that tables are used before the first read, because processes with the number may
            use the transaction too; else the next batch of this process says so.
    """

    __slots__ = ("_cache", "_handle", "_merge", "marks_first")

    def __init__(self, handle: TransactionHandle, merge: Merge, *, marks_first: bool) -> None:
        self._handle = handle
        self._cache = handle.environment.read_cache
        self._merge = merge
        self.marks_first = marks_first

    def read_key(self, table: TableEntry, key: bytes) -> Version | None:
        """The newest version of a key at the transaction's timestamp, own intents included, buffered writes not.

        Raises:
            LostConflict, RequestTooOld, TransactionNotOpen, TransactionTimedOut, TableNotFound
        """
        handle, connection = self._handle, self._handle.connection
        if not connection.reads_at_once:
            self._flush_group(table, key)
        while True:
            try:
                with connection.recorded_view(partial(self._admit, table, key)) as view:
                    version = reading.at_timestamp(view, table, key, handle.timestamp, handle.txn_id)
            except (NeedsWrite, MustPush) as obstacle:
                self._clear(table, obstacle)
            else:
                handle.uses_tables = True
                return version

    def read_page(self, table: TableEntry, key_range: KeyRange, part: KeyRange, left: int | None) -> Page:
        """The next page of a range, in the direction of the range, and the rest behind the page.

        No row that the transaction would have seen can come any more into the part of the range that was read: the
        whole range, or the part up to the last row where the limit is reached.

        Args:
            part: the part of `key_range` that is not read yet.
            left: rows still asked for; None if the range is read to its end.

        Raises:
            as `read_key`
        """
        if not self._handle.connection.reads_at_once:
            self._flush_group(table, None)
        if left is not None:
            return self._limited_page(table, key_range, part, left)
        handle = self._handle

        def note(_view: ReadView, cache: ReadCache) -> None:
            cache.record_range(
                table.table_id, key_range.start, key_range.end, handle.timestamp, handle.txn_id
            )

        return self._recorded(table, note, lambda view: self._rows(view, table, part, PAGE_ENTRIES))

    def _flush_group(self, table: TableEntry, key: bytes | None) -> None:
        """Let a read see what earlier ends of its group write: a write below this read would be refused as too old."""
        from storage.client.work.end_queue import queue_of

        queue = queue_of(self._handle.connection)
        if queue is not None:
            queue.flush_if_written(table.name, key)

    def _flush_queued(self) -> bool:
        """Flush the queue of the group; False if there is nothing queued."""
        from storage.client.work.end_queue import queue_of

        queue = queue_of(self._handle.connection)
        if queue is None or queue.is_empty:
            return False
        queue.flush_ends()
        return True

    def needs_mark(self, record: TransactionRecord) -> bool:
        """Whether the record has to be changed before a table may be used."""
        if record.uses_tables:
            return False
        return self.marks_first or record.consumed > record.timestamp

    def needs_write_before_put(self) -> bool:
        """Whether a batch has to come before a buffered put, to issue a timestamp or to find why none can be used."""
        handle = self._handle
        if not handle.txn_id:
            return (
                not handle.timestamp or handle.connection.clock.boot_ns() >= handle.beginning.boot_deadline_ns
            )
        with handle.connection.environment.view() as view:
            record = records.get(view, handle.txn_id)
            handle.timestamp = record.timestamp
            is_over = record.state_code != OPEN or record.is_overdue(view.now_ns)
            return is_over or (not record.uses_tables and record.consumed > record.timestamp)

    def make_ready(self, batch: WriteBatch, record: TransactionRecord) -> None:
        """Write the mark or the page that a read waits for.

        Raises:
            RequestTooOld: the transaction may use no table; it is doomed, durably.
        """
        coordinator, owner = self._handle.coordinator, self._handle.connection.identity
        arbiter = Arbiter(batch, coordinator, owner)
        arbiter.begin_use(record)
        arbiter.check_window(record)
        if not batch.read_cache.is_valid(batch.superblock):
            batch.read_cache.start_anew(batch.superblock)

    def _limited_page(self, table: TableEntry, key_range: KeyRange, part: KeyRange, left: int) -> Page:
        """A page of a range of which at most `left` rows are asked for.

        How far the page reaches shows only by reading, so the page is read inside the gate in which it is recorded.
        """
        handle = self._handle
        pages: list[Page] = []

        def note(view: ReadView, cache: ReadCache) -> None:
            rows, rest = self._rows(view, table, part, min(left, PAGE_ENTRIES))
            if len(rows) >= left:
                rows = rows[:left]
                rest = part.after(rows[-1].key)
            done = key_range.without(rest)
            cache.record_range(table.table_id, done.start, done.end, handle.timestamp, handle.txn_id)
            pages[:] = [(rows, rest)]

        return self._recorded(table, note, lambda _: pages[0])

    def _rows(self, view: ReadView, table: TableEntry, part: KeyRange, limit: int) -> Page:
        """Rows of a view, with the buffered writes among them."""
        version = self._handle.timestamp, self._handle.txn_id
        pick = reading.AtTimestamp(view, table.table_id, *version)
        rows, rest = reading.page(view, table.table_id, part, pick, limit)
        return self._merge(table.table_id, rows, part, rest, version), rest

    def _recorded(self, table: TableEntry, note: Note, look: Callable[[ReadView], T]) -> T:
        """Record a read of several keys, look, and push the intents in the way until none is left."""
        handle = self._handle
        while True:
            try:
                with handle.connection.recorded_view(partial(self._admit, table, note)) as view:
                    result = look(view)
            except (NeedsWrite, MustPush) as obstacle:
                self._clear(table, obstacle)
            else:
                handle.uses_tables = True
                return result

    def _clear(self, table: TableEntry, obstacle: NeedsWrite | MustPush) -> None:
        """Write the batch that a read waits for."""
        handle = self._handle
        if isinstance(obstacle, NeedsWrite):
            handle.run_batch(self.make_ready, share=ReserveShare.PART)
        elif handle.connection.reads_at_once or not self._flush_queued():
            # Otherwise the intent in the way may be of an end that the group had queued.
            handle.run_batch(partial(self._push, met=obstacle, table=table), share=ReserveShare.PART)

    def _admit(self, table: TableEntry, read: bytes | Note, view: ReadView, wall_ns: int) -> None:
        """Inside the gate: see that the transaction may read, and record the read.

        Args:
            read: the key that is read, or records the read.
            wall_ns: the wall time.

        Raises:
            NeedsWrite: a batch has to change something first, as make a damaged read cache anew, or find why the
                transaction may never read.
            TableNotFound
        """
        handle, cache = self._handle, self._cache
        known = view.known
        superblock = view.superblock if known is None or known.superblock is None else known.superblock
        if not cache.is_valid(superblock):
            raise NeedsWrite
        if handle.txn_id:
            record = records.get(view, handle.txn_id)
            handle.timestamp = record.timestamp
            is_usable = (
                record.state_code == OPEN
                and not self.needs_mark(record)
                and record.isolation == TransactionIsolation.SERIALIZABLE.value
                and not record.is_overdue(view.now_ns)
            )
        else:
            is_usable = handle.timestamp > 0 and view.clock.boot_ns() < handle.beginning.boot_deadline_ns
        if not is_usable or not retention.is_in_window(superblock, view.clock, wall_ns, handle.timestamp):
            raise NeedsWrite
        if known is None or table.state not in known.records:
            check_exists(view, table)
        try:
            if type(read) is bytes:
                cache.record_key(table.table_id, read, handle.timestamp, handle.txn_id)
            else:
                read(view, cache)  # type: ignore[operator]
        except ReadsDamaged:
            raise NeedsWrite from None

    def _push(self, batch: WriteBatch, record: TransactionRecord, met: MustPush, table: TableEntry) -> None:
        coordinator, owner = self._handle.coordinator, self._handle.connection.identity
        arbiter = Arbiter(batch, coordinator, owner)
        arbiter.begin_use(record)
        arbiter.push_for_read(record, met, table.name)
