"""The open store of one process on a server: two sessions, one for batches and leases, one for views.

A view inside a view has a session of its own for its time, so that each shows the last commit before it.

Holds: no view is held while anything waits. A lost session takes its locks along, so the handle fails for good; the
leases count as those of a dead process. A forked child has neither session.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeVar

from storage.disk.environment import Fetch, Follow, ReaderSlot, Usability
from storage.disk.postgres import gate as gates
from storage.disk.postgres.binary import as_bool, as_int, int4, int8
from storage.disk.postgres.client_name import application
from storage.disk.postgres.commit_wait import ServerCommitWait
from storage.disk.postgres.gate import GatePass, GateWait
from storage.disk.postgres.kept_reads import KeptReads, ReadsOfProcess
from storage.disk.postgres.known_server import KnownServer
from storage.disk.postgres.layout import (
    CLOCK,
    DROP_SHARED,
    IS_EARLY,
    LAST,
    LOCK_GATE,
    MOVE_TO_HEADS,
    NO_FLUSH,
    NOTIFY,
    NUMBER_MARKS,
    OPEN,
    SHARE_STORE,
    WATCH,
    RecordPlace,
)
from storage.disk.postgres.mark_table import MarkTable
from storage.disk.postgres.read_tables import ReadTables
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.server_errors import plain
from storage.disk.postgres.server_locks import (
    STORE_IN_USE,
    WAITS,
    ServerLeases,
    ServerLocks,
    ServerTimestamps,
    SharedLeases,
)
from storage.disk.postgres.server_record import read_record
from storage.disk.postgres.session import (
    BEGIN,
    BEGIN_VIEW,
    COMMIT,
    ROLLBACK,
    Row,
    Session,
    Step,
)
from storage.disk.postgres.snapshot import ServerView, Snapshot
from storage.disk.postgres.speculation import Speculation
from storage.disk.postgres.store_figures import StoreFigures
from storage.disk.postgres.url import StoreUrl
from storage.disk.postgres.writer import PostgresWriter
from storage.disk.schema import ALL, FORMAT_NUMBER, Database
from storage.disk.superblock import Superblock
from storage.disk.view import BatchContext, ReadView
from storage.errors import (
    StoreClosed,
    StoreInUse,
    StoreInvalid,
    StoreNotFound,
    TxnctlError,
    WriterBusy,
)
from storage.limits import LOCK_TIMEOUT_S
from storage.process.background_flush import Flusher
from storage.process.clock import Clock
from storage.process.writer_gate import OnWait

if TYPE_CHECKING:
    from storage.disk.postgres.store_build import SchemaView

T = TypeVar("T")

_CHILD: Final = "the store was opened before this process forked; open the store anew in the child"


class PostgresEnvironment:
    """See the module; attributes as `environment.Environment` has them.

    Attributes:
        places: the tables of the databases, by name.
        lock_class: the first half of the store's lock keys, as a parameter.
        is_replicated: whether the store was made for commits that wait for a standby.
        server: the record of the server, as found at opening.
        known: the server, compared with the record and with the commits that this process has seen.
    """

    has_directory = False

    def __init__(
        self,
        path: str,
        clock: Clock,
        *,
        read_only: bool,
        timeout_s: float = LOCK_TIMEOUT_S,
        on_wait: OnWait | None = None,  # noqa: ARG002
    ) -> None:
        url = StoreUrl.parse(path)
        self.path, self.pid = url.shown, os.getpid()
        self.server_clock = ServerClock(clock)
        self.clock: Clock = self.server_clock
        self.read_only, self.is_old = read_only, False
        self.failed: str | None = None
        self.usability: Usability = self
        self.format_number = FORMAT_NUMBER
        self.flusher = Flusher(clock)
        self.places = {database.name: RecordPlace(database) for database in ALL}
        self._handles: dict[str, object] = dict(self.places)
        self._write_lock, self._view_lock = threading.RLock(), threading.RLock()
        self._watchers = self._depth = self._views_depth = 0
        self._is_viewed = False
        self._url, self._application = url, application()
        self._limit_s = timeout_s
        self._batches = Session.connect(url, clock, application=self._application, limit_s=timeout_s)
        try:
            self._views = Session.connect(
                url, clock, application=self._application, limit_s=timeout_s, beside=self._batches
            )
            try:
                self._adopt()
            except BaseException:
                self._views.close()
                raise
        except BaseException:
            self._batches.close()
            raise

    def _adopt(self) -> None:
        """Check that the schema is a whole store, and take the locks of an open store.

        Raises:
            StoreNotFound, NotAStore, UnknownFormat, StoreInUse
        """
        self.server = read_record(self._views, self.path, self._schema)
        lock_class, lease_class, self.is_replicated = self.server[:3]
        self.lock_class = int4(lock_class)
        self._lock_number = lock_class
        own = SharedLeases(self._send_released)
        self._batch_leases = ServerLeases(self._batches, lease_class, own)
        self._view_leases = ServerLeases(self._views, lease_class, own)
        self.timestamps = ServerTimestamps(
            self._batches, self._opened_session, self._send_released, lock_class, self.clock
        )
        self._batch_locks = ServerLocks(self._batch_leases, self.timestamps)
        self.locks = ServerLocks(self._view_leases, self.timestamps)
        self.read_cache = self.read_tables = ReadTables(self._batches, self._views)
        self.received_marks = MarkTable(self._opened_session)
        self.reads = ReadsOfProcess()
        self.writer = PostgresWriter(self)
        figures = StoreFigures(self._opened_session, lock_class, self.clock, is_replicated=self.is_replicated)
        self.space, self.counters, self.server_status = figures.space, figures.counters, figures.server_status
        self.gate_holder, self.open_processes = figures.gate_holder, figures.open_processes
        self._views.run_steps((((b"unflushed", b"SET synchronous_commit = off"), ()),))
        sharing = (SHARE_STORE, (self.lock_class, int4(STORE_IN_USE)))
        steps = ((gates.KEEP_IDLE_SHORT, ()), sharing, (IS_EARLY, ()), (CLOCK, ()))
        _, ((shared,),), ((early,),), ((server_us,),) = self._batches.run_steps(steps)
        self.server_clock.look(as_int(server_us))
        if not as_bool(shared):
            raise StoreInUse(f"{self.path} is being copied or restored", hint="Try again when that is done.")
        self.known = KnownServer(self.path, self.server)
        self.adopt_server, self.end_move = self.known.adopt, self.known.end_move
        self.note_commit = self.known.note_commit
        self._look_at_server()
        if as_bool(early):
            self._move_to_heads()

    def _move_to_heads(self) -> None:
        """Bring the tables of an early build up to date. Two processes at once: the second one finds nothing to do.

        Raises:
            StoreInvalid: the store is opened to be read only.
        """
        if self.read_only:
            raise StoreInvalid(
                f"{self.path} was made by an early build",
                hint="Open it once for writing: any command that writes.",
            )
        moving = ((MOVE_TO_HEADS, ()), (NUMBER_MARKS, ()))
        self._batches.run_steps(((BEGIN, ()), (LOCK_GATE, (self.lock_class,)), *moving, (COMMIT, ())))

    def _look_at_server(self) -> None:
        """Raises:
        ServerUnreachable, StoreUnsafe, CommitsLost
        """
        self.known.look(self._batches, self._views, read_only=self.read_only)

    @property
    def is_moved(self) -> bool:
        return self.known.is_moved

    # Usability

    def check_usable(self) -> None:
        """Raises:
        StoreClosed: the handle was closed, forked, or has lost its server.
        """
        if self.failed is not None:
            raise StoreClosed(f"this handle of {self.path} is unusable: {self.failed}")

    def check_written(self) -> None:
        """Raises:
        StoreClosed, StoreInvalid: this process may not change the store.
        """
        if self.failed is not None:
            self.check_usable()
        if self.read_only:
            raise StoreInvalid("the store is open for reading only", hint="Open it with read_only=False.")

    @property
    def may_open_anew(self) -> bool:
        return self.failed is not None

    def fail(self, why: str) -> None:
        """Let every later call fail."""
        if self.failed is None:
            self.failed = plain(why)
            self.known.note_seen()

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Within the block, a lost session makes the handle fail, and its locks are given up."""
        try:
            yield
        finally:
            lost = self._batches.failed or self._views.failed
            if lost is not None:
                self.fail(lost)
            if self.failed is not None:
                self._end_sessions()

    def _end_sessions(self) -> None:
        """End the sessions of a failed handle, but one that a thread is inside, which ends the session at leaving."""
        for lock, session in ((self._write_lock, self._batches), (self._view_lock, self._views)):
            if lock.acquire(blocking=False):
                try:
                    session.close()
                finally:
                    lock.release()

    @property
    def lost_unsent(self) -> bool:
        """Whether the connection was lost before the last steps of a batch were sent."""
        return self._batches.is_unsent

    def context(self, *, is_batch: bool) -> BatchContext:
        """The open store as a batch needs it."""
        cache, marks = self.read_tables, self.received_marks
        if is_batch:
            return BatchContext(self._handles, self.clock, self._batch_locks, cache, marks, cache.catch_up)
        return BatchContext(self._handles, self.clock, self.locks, cache, marks, cache.catch_up_outside)

    # Views

    @contextmanager
    def _opened_session(self) -> Iterator[Session]:
        """The session of views, for one thread at a time."""
        with self._view_lock:
            self.check_usable()
            with self._losing():
                if not self._views_depth:
                    self._is_viewed = False
                    self._views.end_left_open()
                self._views_depth += 1
                try:
                    yield self._views
                finally:
                    self._views_depth -= 1

    @contextmanager
    def view(self) -> Iterator[ReadView]:
        """Open one consistent view; inside a view of this thread in a further session, which ends with the view."""
        with self._opened_session() as session:
            if not self._is_viewed:
                self._is_viewed = True
                try:
                    with self._view_in(session) as view:
                        yield view
                finally:
                    self._is_viewed = False
                return
            further = Session.connect(
                self._url,
                self.server_clock,
                application=self._application,
                limit_s=self._limit_s,
                beside=session,
            )
            try:
                with self._view_in(further) as view:
                    yield view
            finally:
                further.close()

    @contextmanager
    def _view_in(self, session: Session) -> Iterator[ReadView]:
        rows = session.run_steps(((BEGIN_VIEW, ()), (OPEN, ())))[1]
        view: ServerView | None = None
        reads: KeptReads | None = None
        try:
            number, superblock = self._seen(rows)
            self._view_leases.forget()
            reads = self.reads.of_view(number)
            view = ServerView(Snapshot(session, number, superblock, reads), self._handles, self.clock)
            yield view
        except BaseException as error:
            undecodable = view.named(error) if view is not None else None
            if undecodable is not None:
                raise undecodable from error
            raise
        finally:
            if reads is not None:
                self.reads.give_back(reads)
            if session.failed is None:
                session.post(((COMMIT, ()),))

    def copy_view(self) -> AbstractContextManager[SchemaView]:
        """Open one consistent view of all sealed records, in a third session, for the time of a copy."""
        from storage.disk.postgres.store_build import copy_view

        self.check_usable()
        return copy_view(self._url, self.server_clock, self._application)

    def _seen(self, rows: list[Row]) -> tuple[int, bytes]:
        """Number and superblock of the newest commit, from the row of `OPEN`."""
        if not rows:
            raise StoreNotFound(
                f"the store at {self.path} was removed", hint="Create it anew, or name another."
            )
        number, superblock, server_us, *_ = rows[0]
        assert superblock is not None, "the column is not null"
        self.server_clock.look(as_int(server_us))
        self.note_commit(as_int(number))
        return as_int(number), superblock

    def fetcher(self, database: Database, guard: tuple[Database, bytes], alone: int, follow: Follow) -> Fetch:
        """Make a function as `environment.Environment.fetcher` says, which reads from a view of its own."""

        def fetch(key: bytes) -> tuple[bytes | None, bytes | None]:
            with self.view() as view:
                payload = view.get(database, key)
                if payload is None or not view.has(*guard):
                    return None, None
                first = bytes(payload)
                where = None if first[0] == alone else follow(first)
                second = None if where is None else view.get(*where)
                return first, None if second is None else bytes(second)

        return fetch

    # The gate

    @contextmanager
    def _using_batches(self, wait: GateWait) -> Iterator[None]:
        """Use the session of batches, one thread at a time; what was released meanwhile is sent at the end.

        Raises:
            WriterBusy: another thread of this process did not leave in time.
        """
        if not self._write_lock.acquire(timeout=min(max(0.0, wait.timeout_s), threading.TIMEOUT_MAX)):
            raise wait.busy_here()
        try:
            self._depth += 1
            self._batches.limit_s = wait.timeout_s
            try:
                yield
            finally:
                self._depth -= 1
                self._send_released()
        finally:
            self._write_lock.release()

    def _end_left_open(self) -> None:
        if self._depth == 1:
            self._batches.end_left_open()

    def _send_released(self) -> None:
        """Send released timestamps and leases, unless the session is in use: also by this thread, in a finalizer."""
        if not (self.timestamps.has_released or self._batch_leases.has_released):
            return
        if not self._write_lock.acquire(blocking=False):
            return
        try:
            if not self._depth and self.failed is None:
                self._depth = 1
                leases = self._batch_leases.release_steps()
                try:
                    with suppress(StoreInvalid, WriterBusy):
                        self._batches.end_left_open()
                        # A lease is free as soon as the caller knows that it is.
                        send = self._batches.run_steps if leases else self._batches.post
                        send([*leases, *self.timestamps.steps()])
                        self._batch_leases.note_sent(leases)
                        self.timestamps.note_stored()
                finally:
                    self._depth = 0
        finally:
            self._write_lock.release()

    @contextmanager
    def gate(self, wait: GateWait) -> Iterator[GatePass]:
        """Pass the writer gate within the block; what the block has not committed is undone.

        Raises:
            WriterBusy, StoreClosed, ServerLost
        """
        with self._using_batches(wait):
            self.check_usable()
            with self._losing():
                self._end_left_open()
                passed = self._passed = gates.enter(self, self._batches, wait)
                try:
                    self.server_clock.look(passed.server_us)
                    self.note_commit(passed.number)
                    self._batch_leases.forget()
                    self.read_tables.enter(passed.reads)
                    self.known_passes = self.read_tables.passes
                    yield passed
                finally:
                    self.read_tables.leave()
                    passed.leave()

    @contextmanager
    def speculating(self, number: int, superblock: bytes, wait: GateWait) -> Iterator[Speculation]:
        """Make a batch on the last commit that this process knows, without the gate.

        Raises:
            WriterBusy, StoreClosed, ServerLost
        """
        with self._using_batches(wait):
            self.check_usable()
            self._batch_leases.forget(in_gate=False)
            self.known_passes = self.read_tables.passes
            with self._losing():
                self._end_left_open()
                try:
                    yield Speculation(self._batches, number, superblock)
                finally:
                    self.read_tables.leave()

    def end_batch(self, steps: Sequence[Step], wait: GateWait | None) -> tuple[list[list[Row]], bool]:
        """Run the last steps of a batch; return their rows, and whether the commit waited for a standby, if it had to.

        Args:
            wait: the wait for the gate, for a batch that was made without it.

        Raises:
            Overtaken, WriterBusy, ServerLost, StoreFull, StoreInvalid
        """
        session = self._batches
        if wait is None:
            rows = session.run_steps(steps)
            self._passed.is_open = False
        else:
            try:
                rows = session.run_steps(steps, timeout_s=wait.timeout_s, on_slow=wait.on_slow)
            except BaseException:
                self._end_failed()
                raise
        server_us = as_int(rows[0][0][0] if rows[0] else rows[1][0][0])
        self.server_clock.look(abs(server_us))
        if server_us < 0:
            self._wake()
        return rows, not session.is_local_only

    def _end_failed(self) -> None:
        """End a transaction that an error has left open: only commits for a standby have begun one."""
        if self.is_replicated and self._batches.failed is None:
            self._batches.post(((ROLLBACK, ()),))

    @contextmanager
    def recorded_view(
        self, record: Callable[[ReadView, int], None], timeout_s: float, on_wait: OnWait | None
    ) -> Iterator[ReadView]:
        """Inside the gate note the coming reads, then open the view: a writer sees the note, or committed before."""
        self.check_written()
        with self.gate(GateWait(timeout_s, on_wait)) as passed:
            reads = self.reads.claim(passed.number)
            view = ServerView(passed.snapshot(reads), self._handles, self.clock)
            try:
                record(view, self.clock.wall_ns())
            except TxnctlError as error:
                raise view.named(error) or error from error
            self.reads.advance(reads, passed.number, {})
            self._end_unflushed(passed)
        with self.view() as view_after:
            yield view_after

    def look_at_superblock(
        self, look: Callable[[Superblock, int], T], timeout_s: float, on_wait: OnWait | None
    ) -> T:
        """Run `look` inside the gate on the superblock of the last commit."""
        self.check_written()
        with self.gate(GateWait(timeout_s, on_wait)) as passed:
            result = look(passed.superblock(), self.clock.wall_ns())
            self._end_unflushed(passed)
        return result

    def await_commits(self, timeout_s: float, on_wait: OnWait | None) -> None:
        """Pass the gate: the server may still be committing for a client that is gone, and holds it until then."""
        with self.gate(GateWait(timeout_s, on_wait)):
            pass

    def _end_unflushed(self, passed: GatePass) -> None:
        """Commit what was recorded in tables that a crash empties, which needs no flush."""
        pending = [*self.timestamps.steps(), *self.read_tables.pending]
        if pending:
            self._batches.run_steps([(NO_FLUSH, ()), *pending, (COMMIT, ())])
            passed.is_open = False
            self.timestamps.note_stored()

    def run_unflushed(self, step: Step) -> None:
        """Run a step on tables that a crash empties; a lost session is no error of what was done before."""
        with suppress(StoreInvalid, WriterBusy), self._opened_session() as session:
            session.run_steps((step,))

    def _wake(self) -> None:
        """After a commit, wake the processes that wait for one."""
        with suppress(StoreInvalid, WriterBusy):
            self._batches.post(((NOTIFY, ()),))

    # Commits

    def last_commit(self) -> int:
        with self._opened_session() as session:
            (rows,) = session.run_steps(((LAST, ()),))
        if not rows:
            raise StoreNotFound(f"the store at {self.path} was removed")
        return as_int(rows[0][0])

    def visible_commit(self) -> int:
        return self.last_commit()

    def now_ns_without(self, database: Database) -> int | None:  # noqa: ARG002
        return None

    def commit_wait(self) -> ServerCommitWait:
        return ServerCommitWait(self)

    def look_in_place(self) -> None:
        self.check_usable()

    @property
    def descriptor(self) -> int:
        """The socket on which notifications come."""
        return self._views.descriptor

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Have commits notify this process within the block."""
        key = (self.lock_class, int4(WAITS))
        with self._opened_session() as session:
            self._watchers += 1
            if self._watchers == 1:
                session.run_steps((((b"listen", f'LISTEN "{self._schema}"'.encode()), ()), (WATCH, key)))
        try:
            yield
        finally:
            with suppress(StoreInvalid, WriterBusy), self._opened_session() as session:
                self._watchers -= 1
                if not self._watchers:
                    session.run_steps(((DROP_SHARED, key),))

    @property
    def _schema(self) -> str:
        return StoreUrl.parse(self.path).store

    # Figures

    def reserve_bytes(self) -> int:
        return 0

    def reader_slots(self) -> list[ReaderSlot]:
        return []

    def free_dead_readers(self) -> int:
        return 0

    def remove_leftovers(self) -> None:
        from storage.disk.postgres.store_build import remove_left_copy

        with self._opened_session() as session:
            remove_left_copy(session, self._url)

    def check_pages(
        self,
        commit: int,  # noqa: ARG002
        report: Callable[[int, str], None],  # noqa: ARG002
        progress: Callable[[str, int], None] | None,  # noqa: ARG002
        *,
        full: bool,  # noqa: ARG002
    ) -> bool:
        """Whether the pages are sound: they are the server's, which has checksums of its own."""
        return True

    def digest(self) -> bytes:
        """The number of the last commit: nothing else changes what is stored."""
        return int8(self.last_commit())

    # Opening, closing, forking

    def reopen_for_writing(self, timeout_s: float, on_wait: OnWait | None) -> None:  # noqa: ARG002
        self.read_only = False
        try:
            self._look_at_server()
        except BaseException:
            self.read_only = True
            raise

    def cap_limit(self, seconds: float) -> None:
        self._limit_s = self._views.limit_s = min(self._limit_s, seconds)

    def close(self) -> None:
        """Close both sessions, which drops every lock of this process."""
        self.flusher.stop()
        if self.pid == os.getpid() and self.failed is None:
            self.writer.flush_tally()
        self.fail("the handle is closed")
        if self.pid == os.getpid():
            self._views.close()
            self._batches.close()

    def before_fork(self) -> None:
        """Let no thread be inside a session while the process forks, as far as each comes out within two seconds."""
        self._is_still = self._write_lock.acquire(timeout=2.0)
        if self._is_still and not self._view_lock.acquire(timeout=2.0):
            self._write_lock.release()
            self._is_still = False

    def after_fork(self) -> None:
        if self._is_still:
            self._view_lock.release()
            self._write_lock.release()

    def forked(self) -> bool:
        """In the child, close the sockets alone. The sessions go on in the parent."""
        self.failed = _CHILD
        self.flusher.forked()
        self._views.close_in_child()
        self._batches.close_in_child()
        return True
