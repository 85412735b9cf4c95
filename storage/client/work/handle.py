"""A serializable transaction as its process holds it: begun without a commit, given a record when something needs it.

Its timestamp comes from the shared page of read_cache.py, below a mark that is durably reserved; in a store without
tables it has none before its record. That is written when its number is asked for, when a message, an acknowledgement
or an intent names it, when it meets another transaction, or when it commits something (docs/decisions/0015, 0017).

The lock keeps the thread that uses the transaction and the watch over what is kept (flusher.py) out of each other's
way. It is taken before the writer gate, and nobody holds those of two transactions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self, TypeVar

from storage.disk.connection import Connection
from storage.disk.schema import TABLES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TxnctlError
from storage.limits import TIMESTAMP_RESERVE_NS
from storage.table.write import begin_use
from storage.txn import record as records
from storage.txn.begin import BeginOptions, Started, check_begin
from storage.txn.coordinator import Coordinator
from storage.txn.options import SERIALIZABLE, TransactionOptions
from storage.txn.record import TransactionRecord
from storage.values.txn_state import TransactionState

T = TypeVar("T")


class Unready(Exception):
    """Something has to be written before this read can be recorded."""


class Begun:
    """How a transaction was asked for; see `Store.transaction`."""

    __slots__ = ("attached", "labels", "options", "timeout_ms")

    def __init__(
        self,
        timeout_ms: int,
        labels: dict[str, str] | None,
        options: TransactionOptions = SERIALIZABLE,
        attached: bool = True,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.labels = labels
        self.options = options
        self.attached = attached


class LazyTransaction:
    """See the module. For one thread at a time.

    Attributes:
        txn_id: the transaction's number; 0 as long as it has no record.
        timestamp: 0 as long as it is not known.
    """

    def __init__(
        self,
        connection: Connection,
        coordinator: Coordinator,
        begun: Begun,
        txn_id: int = 0,
        started: Started | None = None,
    ) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._begun = begun
        self._started = started
        self._lock = threading.RLock()
        self._uses_tables = self._is_marked = False
        self._tried: TransactionRecord | None = None
        self._ended: TransactionState | None = None
        self._boot_deadline_ns = connection.clock.boot_ns() + begun.timeout_ms * 1_000_000
        self.txn_id = txn_id
        self.timestamp = started.timestamp if started is not None else 0
        self._keep_nothing()

    def _keep_nothing(self) -> None:
        """What it begins with: each class that builds on this one says what it keeps in the process."""

    # Beginning

    @classmethod
    def begin(cls, connection: Connection, coordinator: Coordinator, begun: Begun) -> Self:
        """Begin attached, without a commit if a timestamp can be had so.

        Raises:
            InvalidValue, InvalidName
        """
        check_begin(begun.timeout_ms, begun.labels)
        cache, clock, started = connection.environment.read_cache, connection.clock, []
        connection.check_writable()

        if not cache.is_attached:
            with connection.view() as view:
                if not view.count(TABLES):
                    return cls(connection, coordinator, begun, 0, Started(0, clock.wall_ms(), view.now_ns))

        def issue(view: ReadView) -> None:
            if not cache.is_valid(view.superblock):
                raise Unready
            timestamp = max(clock.wall_ns(), max(cache.issued, view.superblock.last_timestamp) + 1)
            if timestamp > view.superblock.timestamp_mark:
                raise Unready
            cache.note_issued(timestamp)
            started.append(Started(timestamp, clock.wall_ms(), view.now_ns))

        # Whoever is about to write a key is refused over the read of a newer transaction: it had better commit first.
        connection.environment.lock_file.back_off(connection.lock_timeout_s)
        for is_prepared in (False, True):
            with suppress(Unready), connection.recorded_view(issue):
                return cls(connection, coordinator, begun, 0, started[0])
            if not is_prepared:
                # A record would stay, also of a transaction that comes to nothing; reserved timestamps are no trace.
                connection.write(_prepare)
        return cls._begin_durably(connection, coordinator, begun)

    @classmethod
    def _begin_durably(cls, connection: Connection, coordinator: Coordinator, begun: Begun) -> Self:
        work = cls(connection, coordinator, begun)
        work.materialize()
        return work

    def known_timestamp(self) -> int:
        """Its timestamp; in a store without tables it is issued now if it was not yet."""
        if not self.timestamp:
            self.materialize()
        return self.timestamp

    def materialize(self) -> None:
        """Give the transaction a record if it has none yet."""
        with self._lock:
            if not self.txn_id:
                make = self._make_record if self._ended is None else self._make_ended
                self._adopt(self._in_doubt(lambda: self._connection.write(make)))

    def _make_record(self, batch: WriteBatch, *, ends_here: bool = False) -> TransactionRecord:
        begun, owner = self._begun, self._connection.owner
        if batch.count(TABLES):
            _prepare(batch)
        started = self._started
        if started is not None and self._ended is not None:
            # It ended in time: it is not the deadline that ends it now.
            started = Started(started.timestamp, started.wall_ms, batch.now_ns)
        lease = self._connection.lease(batch) if begun.attached and not ends_here else 0
        record = self._coordinator.begin(
            batch,
            owner,
            lease,
            BeginOptions(begun.timeout_ms, begun.labels, begun.options, started),
            ends_here,
        )
        self._tried = record
        if self._uses_tables:
            record.uses_tables = True
            if not ends_here:
                records.save(batch, record)
        return record

    def _adopt(self, record: TransactionRecord) -> None:
        # The number comes last: who knows it knows the rest.
        self.timestamp, self._is_marked = record.timestamp, record.uses_tables
        self.txn_id = record.txn_id

    def _make_ended(self, batch: WriteBatch) -> TransactionRecord:
        """A transaction that ended without a record is given one: it ends there too, in the same store transaction."""
        owner, txn_id = self._connection.owner, self._make_record(batch).txn_id
        if self._ended is TransactionState.COMMITTED:
            return self._coordinator.commit(batch, txn_id, owner).record
        return self._coordinator.abort(batch, txn_id, owner).record

    def _write(
        self, change: Callable[[WriteBatch, TransactionRecord], T], timeout_s: float | None = None
    ) -> T:
        """Run a change on a batch with the open transaction's record, which is made if need be."""

        def whole(batch: WriteBatch) -> tuple[TransactionRecord, T]:
            record = self._record_in(batch)
            return record, change(batch, record)

        write = self._connection.write
        record, result = self._in_doubt(lambda: write(whole, naming=self.txn_id, timeout_s=timeout_s))
        self._adopt(record)
        return result

    def _record_in(self, batch: WriteBatch) -> TransactionRecord:
        """The record of the open transaction, which says by now whether it has used a table. The caller saves it.

        Raises:
            TransactionNotOpen, TransactionTimedOut, LostConflict, ReadOnlyTransaction
        """
        txn_id, owner = self.txn_id or self._make_record(batch).txn_id, self._connection.owner
        record = self._coordinator.use(batch, txn_id, owner)
        if self._uses_tables:
            begin_use(batch, self._coordinator, record, owner)
        return record

    def _in_doubt(self, write: Callable[[], T]) -> T:
        """Run a write of the transaction; if it fails, look what is in the store by now."""
        self._find_tried()
        try:
            return write()
        except BaseException:
            # A refusal that was durable, or an interrupt after the commit.
            with suppress(TxnctlError):
                self._find_tried()
            raise

    def _find_tried(self) -> None:
        """Look whether the transaction has a record by now, if a write that was to make it came to no end."""
        tried = self._tried
        if self.txn_id or tried is None:
            return
        with self._connection.view() as view:
            record = records.find(view, tried.txn_id)
        if record is not None and (record.timestamp, record.owner_fields, record.deadline_ns) == (
            tried.timestamp,
            tried.owner_fields,
            tried.deadline_ns,
        ):
            self._adopt(record)
        self._tried = None

    def see_usable(self) -> None:
        """Raises:
        TransactionNotOpen, TransactionTimedOut, LostConflict: it is not open, or overdue.
        """
        if self._is_unusable():
            self._write(_nothing)

    def within(self, action: Callable[[WriteBatch, int], T]) -> T:
        """Run an action of others that names the transaction, in a store transaction that gives it a record if need be.

        Raises:
            TransactionNotOpen, TransactionTimedOut, RequestTooOld, and what `action` raises.
        """

        def whole(batch: WriteBatch, record: TransactionRecord) -> T:
            records.save(batch, record)
            return action(batch, record.txn_id)

        with self._lock:
            self._enter()
            return self._write(whole)

    def _enter(self) -> None:
        """What every operation begins with.

        Raises:
            TransactionNotOpen
            StoreClosed, StoreInvalid: of the handle
        """
        self._connection.check_writable()
        self._check_not_ended()

    def _check_not_ended(self) -> None:
        """A transaction that ended without a record is given one, so that the error names it."""
        if self._ended is not None:
            self.materialize()
            self._write(_nothing)

    def _is_unusable(self) -> bool:
        """Whether it is not open, or overdue: then an operation of the coordinator says why."""
        if not self.txn_id:
            return self._connection.clock.boot_ns() >= self._boot_deadline_ns
        with self._connection.view() as view:
            record = records.get(view, self.txn_id)
            return record.state is not TransactionState.OPEN or record.is_overdue(view.now_ns)

    def forked(self) -> None:
        """This is the child of a fork: whoever held the lock is not here."""
        self._lock = threading.RLock()

    @property
    def state(self) -> TransactionState:
        """The transaction's state now."""
        if self._ended is not None:
            return self._ended
        if not self.txn_id and self._tried is not None:
            with self._lock:
                self._find_tried()
        if not self.txn_id:
            return TransactionState.OPEN
        with self._connection.view() as view:
            return records.state_of(view, self.txn_id)

    @property
    def message_bound(self) -> int | None:
        """Its timestamp, if it has used a table, here or by its number elsewhere."""
        if self.txn_id and not self._uses_tables:
            with self._connection.view() as view:
                return self.timestamp if records.get(view, self.txn_id).uses_tables else None
        return self.timestamp if self._uses_tables else None

    def _deadline_ns(self) -> int:
        assert self._started is not None, "a transaction without a record knows when it began"
        return self._started.now_ns + self._begun.timeout_ms * 1_000_000


def _nothing(_batch: WriteBatch, _record: TransactionRecord) -> None:
    """Only see that the transaction is open."""


def _prepare(batch: WriteBatch) -> None:
    """See that timestamps can be issued without a commit: a valid file to issue them from, and a mark ahead of them."""
    head = batch.superblock
    if not batch.read_cache.is_valid(head):
        batch.read_cache.start_anew(head)
    reserved = max(head.last_timestamp, batch.clock.wall_ns()) + TIMESTAMP_RESERVE_NS
    if reserved > head.timestamp_mark:
        head.timestamp_mark = reserved
        head.changes += 1
