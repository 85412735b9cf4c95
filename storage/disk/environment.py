"""The interface of a storage engine: the open environment of one store in one process.

Two engines implement it: `lmdb/` keeps a store in a directory, `postgres/` in a schema of a PostgreSQL server. Rooms
above know neither; they reach the environment through a `Connection`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from storage.actions import Action, is_elsewhere, resume
from storage.disk.batch_runs import HolderEnds
from storage.disk.counters import Counters
from storage.disk.reserve import ReserveShare
from storage.disk.schema import Database
from storage.disk.shared_state import ReadCache, ReceivedMarks
from storage.disk.superblock import Superblock
from storage.disk.view import ReadView, WriteBatch
from storage.process.background_flush import Flusher
from storage.process.clock import Clock
from storage.process.locks import Locks
from storage.process.writer_gate import OnWait
from storage.values.named_tuple import NamedTuple

if TYPE_CHECKING:
    from storage.disk.sealed_records import CopyView
    from storage.disk.server_status import ServerStatus

T = TypeVar("T")

GATE_HELD_MS = 1000
"""A write has left the gate after this time, unless something is wrong."""

Follow = Callable[[bytes], tuple[Database, bytes] | None]
Fetch = Callable[[bytes], tuple[bytes | None, bytes | None]]


class Space(NamedTuple):
    """Bytes of a store, and of the disk below; None where the engine cannot tell.

    Attributes:
        data_bytes: the size of the data.
        used_bytes: what was ever in use of that.
        map_bytes: address space set aside.
    """

    data_bytes: int
    used_bytes: int | None
    map_bytes: int | None
    disk_free_bytes: int | None
    disk_bytes: int | None


class HolderProcess(NamedTuple):
    """A process that holds the writer gate, or the store open; the state is `held`, `open` or `stopped`.

    Attributes:
        host, program: as far as a server knows them; None for a store in a directory.
        session, user, address: of the session of a server; None for a store in a directory.
        activity: of the session, as `idle in transaction`; None where this role may not see that.
        held_ms: for how long the gate is known to be held; None where nothing tells.
    """

    pid: int | None
    holder: str
    state: str
    host: str | None = None
    program: str | None = None
    session: int | None = None
    user: str | None = None
    address: str | None = None
    activity: str | None = None
    held_ms: int | None = None

    @property
    def stops_writers(self) -> bool:
        """Whether a holder of the gate is stopped, or has held the gate for longer than any write takes."""
        return self.state == "stopped" or (self.held_ms or 0) >= GATE_HELD_MS

    @property
    def way_out(self) -> Action | None:
        """The next step about a holder that goes on with nothing, on the host of the process or on the server."""
        if self.pid is not None and (self.state == "stopped" or is_elsewhere(self.host)):
            return resume(self.pid, self.host)
        if self.session is not None:
            return Action("terminate_session", self.session)
        return None

    @property
    def is_this(self) -> bool:
        """Whether a server names this process."""
        return (self.pid, self.host) == (os.getpid(), os.uname().nodename)


class ReaderSlot(NamedTuple):
    """A reader of any process, and the commit that its view shows; None between views."""

    pid: int
    commit: int | None


class Writer(Protocol):
    """Runs changes on batches; see `batch_runs.py` for the prologue.

    Attributes:
        prologue, prologue_due_ns, holder_ends, make_room, trims_on_the_way: as `BatchRuns` has them.
    """

    prologue: Callable[[WriteBatch, bool], int] | None
    holder_ends: HolderEnds | None
    make_room: Callable[[WriteBatch, int], bool] | None
    prologue_due_ns: int
    trims_on_the_way: bool

    @property
    def uses_reserve(self) -> bool:
        """Whether the batch runs on the reserve of a full disk, and so does nothing but its change."""

    def write(
        self,
        change: Callable[[WriteBatch], T],
        *,
        naming: int = 0,
        timeout_s: float = ...,
        on_wait: OnWait | None = None,
        dry_run: bool = False,
        share: ReserveShare = ReserveShare.NONE,
    ) -> T:
        """Run `change` on a write batch and commit the batch durably; return the result of `change`.

        `change` may run again, so it must touch nothing but the batch. If `change` raises, the batch is dropped, except
        after `raise batch.refuse(error)`. A batch without changes is not committed.

        Args:
            naming: the transaction that the caller names, which the prologue must not reap; 0 for none.
            timeout_s: how long to wait for the writer gate.
            dry_run: run everything, then drop the batch.
            share: of the reserve, which the change may use on a full disk; see `reserve.py`.

        Raises:
            WriterBusy, StoreFull, OutcomeUnknown, StoreNotFound, StoreInvalid, OldFormat, and the errors of `change`.
        """

    def rehearse(self, change: Callable[[WriteBatch], T], naming: int = 0) -> T:
        """Run `change` on an overlay over one view and return its result: a dry run that keeps no writer waiting."""

    def upgrade(
        self,
        change: Callable[[WriteBatch], T],
        naming: int,
        dry_run: bool,
        timeout_s: float,
        on_wait: OnWait | None,
    ) -> T:
        """Run the change that upgrades a store of an earlier format, which only this process has open."""

    def keep_reserve(self, timeout_s: float = ..., on_wait: OnWait | None = None) -> None:
        """Give the reserve the size that the store's setting says, now."""


class Usability(Protocol):
    """Whether an environment may be used and written, to be read without a call.

    Attributes:
        failed: why the environment is no longer usable; None while it is usable.
        is_old: whether the store has an earlier format, which is only read.
    """

    failed: str | None
    read_only: bool
    is_old: bool


class Environment(Protocol):
    """See the module. All handles and threads of a process share one environment of a store.

    Attributes:
        path: the directory, or the URL without a password.
        clock: the machine's clocks.
        pid: the process that opened the environment.
        flusher: the watch over buffers of this process.
        writer: runs changes.
        has_directory: whether the store is a directory, whose files can be copied and counted.
        is_moved: whether the store is on another server than its records say, so that a new incarnation begins first.
    """

    path: str
    clock: Clock
    pid: int
    flusher: Flusher
    has_directory: bool

    @property
    def writer(self) -> Writer: ...

    @property
    def read_cache(self) -> ReadCache: ...

    @property
    def received_marks(self) -> ReceivedMarks: ...

    @property
    def locks(self) -> Locks: ...

    @property
    def usability(self) -> Usability:
        """Whether the environment may be used and written; `check_written` says why not."""

    @property
    def read_only(self) -> bool: ...

    @property
    def format_number(self) -> int: ...

    @property
    def may_open_anew(self) -> bool:
        """Whether the environment has failed, and this process may open another one of the store beside it."""

    def check_usable(self) -> None:
        """Raises:
        StoreClosed: the handle was closed, forked, or latched after a failed commit.
        """

    def check_written(self) -> None:
        """Raises:
        StoreClosed, StoreInvalid, OldFormat: this process may not change the store.
        """

    # The server

    @property
    def is_moved(self) -> bool: ...

    def adopt_server(self, batch: WriteBatch) -> str | None:
        """In the batch of a new incarnation, record the server of a moved store; return the change in words.

        None where another process has made the incarnation since this one opened the store.
        """

    def end_move(self, incarnation: int) -> None:
        """After that batch, take the store for settled in the incarnation.

        Raises:
            CommitsLost: the server lacks commits that earlier handles of this process have seen.
        """

    # Views

    @property
    def view(self) -> Callable[[], AbstractContextManager[ReadView]]:
        """Opens one consistent view."""

    def copy_view(self) -> AbstractContextManager[CopyView]:
        """Open one consistent view of all sealed records, for a copy of the store."""

    def fetcher(self, database: Database, guard: tuple[Database, bytes], alone: int, follow: Follow) -> Fetch:
        """Make a function that gets the record under a key and the record that the first one refers to.

        Args:
            guard: database and key of a record without which nothing is found.
            alone: the first byte of records without a reference.
            follow: database and key of the second record, given the first.
        """

    def recorded_view(
        self, record: Callable[[ReadView, int], None], timeout_s: float, on_wait: OnWait | None
    ) -> AbstractContextManager[ReadView]:
        """A view for a serializable read: inside the writer gate `record` notes the coming reads.

        A writer either sees what was noted, or committed before the view.

        Args:
            record: given the view and the wall time in nanoseconds.
        """

    def look_at_superblock(
        self, look: Callable[[Superblock, int], T], timeout_s: float, on_wait: OnWait | None
    ) -> T:
        """Run `look` inside the writer gate on the superblock of the last commit and the wall time in nanoseconds."""

    # Commits

    def await_commits(self, timeout_s: float, on_wait: OnWait | None) -> None:
        """Wait until views show every commit of a writer that has ended, also of one that was killed in its commit.

        Who has seen that a process is gone knows the last of its commits from then on.

        Raises:
            WriterBusy
            StoreInvalid: only a process that writes can show the commit, and this handle is open for reading.
        """

    def last_commit(self) -> int:
        """The number of the last commit of any process; cheap enough for polling."""

    def visible_commit(self) -> int:
        """The number of the last commit that views show."""

    def now_ns_without(self, database: Database) -> int | None:
        """The store clock, if a database has no record as far as this process knows; None: only a view can tell."""

    def commit_wait(self) -> CommitWait:
        """The waits of one handle for commits of any process."""

    def look_in_place(self) -> None:
        """Check, at most once a second, that the store is still there; for callers that wait.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """

    # Figures

    def space(self) -> Space: ...

    def server_status(self) -> ServerStatus | None:
        """The server of the store as it runs now; None for a store in a directory."""

    def reserve_bytes(self) -> int:
        """The bytes of the reserve that are on the disk now."""

    def counters(self, superblock: Superblock) -> Counters:
        """The counters of events; zeros where nothing counts."""

    def gate_holder(self, *, watched: bool = False) -> HolderProcess | None:
        """The process in the writer gate now; None while the gate is free.

        Args:
            watched: wait until the holder leaves, or is known to hold the gate for `GATE_HELD_MS`; on a server only.
        """

    def open_processes(self) -> list[HolderProcess]:
        """The further processes with the store open, as far as this user may see."""

    def reader_slots(self) -> Sequence[ReaderSlot]:
        """The taken slots of the reader table; empty where the engine has none."""

    def free_dead_readers(self) -> int:
        """Free the slots of dead readers; return the number of freed slots."""

    def remove_leftovers(self) -> None:
        """Remove what killed processes have left beside the store."""

    def check_pages(
        self,
        commit: int,
        report: Callable[[int, str], None],
        progress: Callable[[str, int], None] | None,
        *,
        full: bool,
    ) -> bool | None:
        """Check the pages below the records; None where commits came in between, and the caller tries again."""

    def digest(self) -> bytes | None:
        """A digest of all that is stored, to prove that reading changes nothing; None where the engine has none."""

    # Opening, closing, forking

    def reopen_for_writing(self, timeout_s: float, on_wait: OnWait | None) -> None:
        """Switch to writing when a writing handle joins reading handles."""

    def cap_limit(self, seconds: float) -> None:
        """Let no read wait longer than this for another session's lock from now on."""

    def close(self) -> None: ...

    def before_fork(self) -> None: ...

    def after_fork(self) -> None: ...

    def forked(self) -> bool:
        """Let go of the parent's environment, in the child; False if the child cannot open this store anew."""


class CommitWait(Protocol):
    """The waits of one handle."""

    def wait(self, seen: int, until_ns: int) -> bool:
        """Sleep until views show a commit after `seen`, or the boot clock reaches `until_ns`; False for the latter.

        The wait holds no view.

        Args:
            seen: the commit number of the caller's last view.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
