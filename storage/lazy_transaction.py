"""A serializable transaction as its process holds it: begun without a commit, given a record when something needs it.

Its timestamp comes from the shared page of read_cache.py, below a mark that is durably reserved. Its record is written
when its number is asked for, when a message, an acknowledgement or an intent names it, when it meets another
transaction, or when it commits something (docs/decisions/0015).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Self, TypeVar

from storage.connection import Connection
from storage.errors import TxnctlError
from storage.limits import TIMESTAMP_RESERVE_NS
from storage.schema import TABLES
from storage.txn import record as records
from storage.txn.coordinator import Coordinator, Ended, Started, check_begin
from storage.txn.record import TransactionRecord
from storage.txn_options import SERIALIZABLE, TransactionOptions
from storage.txn_state import TransactionState
from storage.view import ReadView, WriteBatch

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
        least: the transaction's number; 0 as long as it has no record.
        timestamp: 0 as long as it is not known.
    """

    def __init__(
        self,
        connection: Connection,
        coordinator: Coordinator,
        begun: Begun,
        least: int = 0,
        started: Started | None = None,
    ) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._begun = begun
        self._started = started
        self._uses_tables = False
        self._tried = 0
        self._ended: TransactionState | None = None
        self._boot_deadline_ns = connection.clock.boot_ns() + begun.timeout_ms * 1_000_000
        self.least = least
        self.timestamp = started.timestamp if started is not None else 0

    # Beginning

    @classmethod
    def begin(cls, connection: Connection, coordinator: Coordinator, begun: Begun) -> Self:
        """Begin attached, without a commit if a timestamp can be had so.

        Raises:
            InvalidValue, InvalidName
        """
        check_begin(begun.timeout_ms, begun.labels)
        cache, clock, started = connection.environment.read_cache, connection.clock, []

        if not cache.is_attached and not _has_tables(connection):
            return cls._begin_durably(connection, coordinator, begun)

        def issue(view: ReadView) -> None:
            if not cache.is_valid(view.head):
                raise Unready
            timestamp = max(clock.wall_ns(), max(cache.issued, view.head.last_timestamp) + 1)
            if timestamp > view.head.timestamp_mark:
                raise Unready
            cache.note_issued(timestamp)
            started.append(Started(timestamp, clock.wall_ms(), view.now_ns))

        # Whoever is about to write a key is refused over the read of a newer transaction: it had better commit first.
        connection.environment.lock_file.let_others_by(connection.lock_timeout_s)
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

    def materialize(self) -> None:
        """Give the transaction a record if it has none yet."""
        if not self.least:
            self._adopt(self._connection.write(self._make_record))
            if self._ended is not None:
                self._end_as_here()

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
            begun.timeout_ms,
            begun.labels,
            begun.options,
            started,
            ends_here,
        )
        self._tried = record.least
        if self._uses_tables:
            record.uses_tables = True
            if not ends_here:
                records.save(batch, record)
        return record

    def _adopt(self, record: TransactionRecord) -> None:
        self.least, self.timestamp = record.least, record.timestamp

    def _end_as_here(self) -> None:
        """A transaction that ended without a record is given one: it ends there too."""
        owner, least, is_commit = (
            self._connection.owner,
            self.least,
            self._ended is TransactionState.COMMITTED,
        )

        def end(batch: WriteBatch) -> Ended:
            if is_commit:
                return self._coordinator.commit(batch, least, owner)
            return self._coordinator.abort(batch, least, owner)

        self._connection.write(end, naming=least)

    def _write(self, change: Callable[[WriteBatch, TransactionRecord], T]) -> T:
        """Run a change on a batch with the open transaction's record, which is made if need be."""

        def whole(batch: WriteBatch) -> tuple[TransactionRecord, T]:
            record = self._record_in(batch)
            return record, change(batch, record)

        try:
            record, result = self._connection.write(whole, naming=self.least)
        except BaseException:
            # A refusal that was durable, or an interrupt after the commit.
            with suppress(TxnctlError):
                self._find_tried()
            raise
        self._adopt(record)
        return result

    def _record_in(self, batch: WriteBatch) -> TransactionRecord:
        """The record of the open transaction.

        Raises:
            TransactionNotOpen, TransactionTimedOut, LostConflict, ReadOnlyTransaction
        """
        if not self.least:
            self._make_record(batch)
            return self._coordinator.use(batch, self._tried, self._connection.owner)
        return self._coordinator.use(batch, self.least, self._connection.owner)

    def _find_tried(self) -> None:
        """Look whether the transaction has a record by now."""
        if self.least or not self._tried:
            return
        with self._connection.view() as view:
            record = records.find(view, self._tried)
        if record is not None and record.timestamp == self.timestamp:
            self._adopt(record)

    @property
    def state(self) -> TransactionState:
        """The transaction's state now."""
        if self._ended is not None:
            return self._ended
        if not self.least:
            return TransactionState.OPEN
        with self._connection.view() as view:
            return records.state_of(view, self.least)

    @property
    def message_bound(self) -> int | None:
        """Its timestamp, if it has used a table, here or by its number elsewhere."""
        if self.least and not self._uses_tables:
            with self._connection.view() as view:
                return self.timestamp if records.get(view, self.least).uses_tables else None
        return self.timestamp if self._uses_tables else None

    def _deadline_ns(self) -> int:
        assert self._started is not None, "a transaction without a record knows when it began"
        return self._started.now_ns + self._begun.timeout_ms * 1_000_000


def _has_tables(connection: Connection) -> bool:
    with connection.view() as view:
        return bool(view.count(TABLES))


def _prepare(batch: WriteBatch) -> None:
    """See that timestamps can be issued without a commit: a valid file to issue them from, and a mark ahead of them."""
    head = batch.head
    if not batch.read_cache.is_valid(head):
        batch.read_cache.start_anew(head)
    reserved = max(head.last_timestamp, batch.clock.wall_ns()) + TIMESTAMP_RESERVE_NS
    if reserved > head.timestamp_mark:
        head.timestamp_mark = reserved
        head.changes += 1
