"""The begin of a transaction in its process: the request, the timestamp, the deadline, and the record later.

An attached transaction begins without a commit. The timestamp comes from the shared page of the read cache, under the
writer gate and below a mark that is durably reserved (docs/decisions/0015), and is held by a kernel lock until there is
a record or an end (docs/decisions/0030). In a store without tables a transaction has no timestamp before its record.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from storage.disk.connection import Connection
from storage.disk.environment import Environment
from storage.disk.reserve import ReserveShare
from storage.disk.schema import TABLES
from storage.disk.superblock import Superblock
from storage.disk.view import WriteBatch
from storage.limits import TIMESTAMP_RESERVE_NS, TRANSACTION_TIMEOUT_MS
from storage.process.locks import OpenTimestamps
from storage.table import retention
from storage.txn.begin import NewTransaction, Started, new_record, timeout_ms_of
from storage.txn.coordinator import Coordinator
from storage.txn.options import SERIALIZABLE, TransactionOptions
from storage.txn.record import TransactionRecord


class NeedsWrite(Exception):
    """A durable write has to come first: of a reserve of timestamps, or of the transaction's record."""


class BeginRequest(NewTransaction):
    """How a transaction is begun; see `Store.transaction`."""

    __slots__ = ("attached",)

    def __init__(
        self,
        timeout_ms: int,
        labels: dict[str, str] | None,
        options: TransactionOptions = SERIALIZABLE,
        attached: bool = True,
    ) -> None:
        """Raises:
        InvalidValue, InvalidName: a timeout or label out of bounds.
        """
        super().__init__(timeout_ms, labels, options)
        self.attached = attached


_RESERVED_ENOUGH_NS: Final = TIMESTAMP_RESERVE_NS - 1_000_000_000
"""A commit reserves timestamps anew where fewer are left: once a second."""

_DEFAULT_REQUEST: Final = BeginRequest(TRANSACTION_TIMEOUT_MS, None)


def request_of(
    timeout_s: float | None, labels: dict[str, str] | None, options: TransactionOptions
) -> BeginRequest:
    """The request for a new transaction; mostly the default one, made once.

    Raises:
        InvalidValue, InvalidName: as `BeginRequest`
    """
    if timeout_s is None and labels is None and options is SERIALIZABLE:
        return _DEFAULT_REQUEST
    return BeginRequest(timeout_ms_of(timeout_s), labels, options)


class HeldTimestamp:
    """A timestamp that was issued without a commit, held by a kernel lock; see `OpenTimestamps`."""

    __slots__ = ("_locks", "_timestamp")

    def __init__(self, locks: OpenTimestamps, timestamp: int) -> None:
        # The locks are kept, because a closed connection has none, and the timestamp is released after it as well.
        self._locks = locks
        self._timestamp = timestamp

    def release(self) -> None:
        """Let readers pass the timestamp; again without effect."""
        self._locks.release(self._timestamp)
        # Behind the release: an interrupt before it leaves the timestamp to the finalizer.
        self._timestamp = 0

    def __del__(self, is_exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        # A constructor that was interrupted has set no timestamp. At the end of the interpreter, which may have taken
        # modules and their variables away, the lock goes with the process.
        if getattr(self, "_timestamp", 0) and not is_exiting():
            self.release()  # A transaction that no object refers to cannot write.


Start = tuple[Started | None, HeldTimestamp | None]
"""The start of a transaction without a record, and its timestamp if one was issued."""


class Beginning:
    """See the module.

    Attributes:
        environment: of the connection.
        started: None for a transaction that was begun with its record.
        boot_deadline_ns: the deadline on the boot clock.
        held: the timestamp of a transaction that has no record; None if there is no timestamp.
    """

    __slots__ = (
        "_connection",
        "_coordinator",
        "_request",
        "boot_deadline_ns",
        "environment",
        "held",
        "started",
    )

    def __init__(
        self,
        connection: Connection,
        coordinator: Coordinator,
        request: BeginRequest,
        environment: Environment,
        start: Start = (None, None),
    ) -> None:
        self._connection = connection
        self._coordinator = coordinator
        self._request = request
        self.environment = environment
        self.started, self.held = start
        self.boot_deadline_ns = connection.clock.boot_ns() + request.timeout_ms * 1_000_000

    @classmethod
    def now(cls, connection: Connection, coordinator: Coordinator, request: BeginRequest) -> Beginning:
        """Begin without a record, if a timestamp can be issued so.

        Raises:
            StoreClosed, StoreInvalid, WriterBusy
        """
        environment = connection.environment
        start = _issue_start(connection, environment, request.timeout_ms)
        return cls(connection, coordinator, request, environment, start)

    def release_timestamp(self) -> None:
        """Let readers pass the timestamp: the transaction has a record, or cannot write any more."""
        if self.held is not None:
            self.held.release()

    @property
    def deadline_ns(self) -> int:
        """The deadline on the store clock, of a transaction that has no record yet."""
        assert self.started is not None, "a transaction without a record knows when it began"
        return self.started.now_ns + self._request.timeout_ms * 1_000_000

    @property
    def is_overdue(self) -> bool:
        """Whether the deadline has passed by the boot clock, which is read without a view."""
        return self._connection.clock.boot_ns() >= self.boot_deadline_ns

    def is_in_time(self) -> bool:
        """Whether a transaction without a record may commit: before its deadline, and within the retention window."""
        assert self.started is not None, "a transaction without a record knows when it began"
        timestamp = self.started.timestamp
        with self._connection.environment.view() as view:
            is_in_window = not timestamp or retention.is_kept(view, timestamp)
            return view.now_ns < self.deadline_ns and is_in_window

    def make_record(
        self, batch: WriteBatch, *, uses_tables: bool, ends_here: bool = False, has_ended: bool = False
    ) -> TransactionRecord:
        """Make the transaction's record.

        Args:
            uses_tables: whether the transaction has used a table.
            ends_here: the transaction is decided in this batch, and its record is saved then.
            has_ended: the transaction ended in time before; its deadline must not be the reason of the end now.
        """
        connection, request, started = self._connection, self._request, self.started
        owner = connection.identity
        ahead_ns = batch.superblock.timestamp_mark - batch.wall_ns
        if ahead_ns < _RESERVED_ENOUGH_NS and (batch.superblock.read_generation or batch.has_records(TABLES)):
            _reserve_timestamps(batch)
        if started is not None and has_ended:
            started = Started(started.timestamp, started.wall_ms, batch.now_ns)
        if ends_here:
            # The end writes the record, and no index by deadline or owner is needed.
            record = new_record(batch, owner, 0, request, started)
            batch.ending = record.txn_id
        else:
            lease = connection.lease(batch) if request.attached else 0
            record = self._coordinator.begin(batch, owner, lease, request, started)
        if uses_tables:
            record.uses_tables = True
        return record


def _issue_start(connection: Connection, environment: Environment, timeout_ms: int) -> Start:
    """The start of a transaction without a record, and its timestamp; None if only a record can give a timestamp."""
    clock, cache, locks = connection.clock, environment.read_cache, environment.locks
    if not cache.is_attached:
        connection.check_writable()
        now_ns = environment.now_ns_without(TABLES)
        if now_ns is not None:
            return Started(0, clock.wall_ns() // 1_000_000, now_ns), None
        with environment.view() as view:
            if not view.has_records(TABLES):
                return Started(0, clock.wall_ms(), view.now_ns), None

    def issue(superblock: Superblock, wall_ns: int) -> tuple[Started, HeldTimestamp]:
        # A timestamp from a removed file is below the watermark of the next file.
        if not cache.is_valid(superblock, looks_at_file=True):
            raise NeedsWrite
        issued = cache.issued
        following = (issued if issued > superblock.last_timestamp else superblock.last_timestamp) + 1
        timestamp = wall_ns if wall_ns > following else following
        if timestamp > superblock.timestamp_mark:
            raise NeedsWrite
        started = Started(timestamp, wall_ns // 1_000_000, superblock.now_ns(clock))
        deadline_ns = clock.boot_ns() + timeout_ms * 1_000_000
        # Held before issued: a reader that knows of the timestamp meets the lock. An interrupt lets go of it.
        held = HeldTimestamp(locks.open_timestamps, timestamp)
        locks.open_timestamps.hold(timestamp, deadline_ns)
        cache.note_issued(timestamp)
        return started, held

    # A process about to write a key would be refused over a read of this newer transaction, so a newcomer backs off.
    for is_reserved in (False, True):
        try:
            return connection.look_at_superblock(issue)
        except NeedsWrite:
            if not is_reserved:
                # A record would stay, even of a transaction that comes to nothing; reserved timestamps leave no trace.
                connection.write(_reserve_timestamps, share=ReserveShare.PART)
    return None, None


def _reserve_timestamps(batch: WriteBatch) -> None:
    """Make timestamps issuable without a commit: a valid page to issue from, and a durable mark ahead of the page."""
    superblock = batch.superblock
    if not batch.read_cache.is_valid(superblock):
        batch.read_cache.start_anew(superblock)
    last, now = superblock.last_timestamp, batch.now_ms * 1_000_000
    reserved = (last if last > now else now) + TIMESTAMP_RESERVE_NS
    if reserved > superblock.timestamp_mark:
        superblock.timestamp_mark = reserved
        superblock.changes += 1
