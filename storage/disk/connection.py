"""The interface of the disk to the rooms above: one handle on a store.

A connection offers views and batches (`view`, `write`, `recorded_view`), the lease of this process, the number of the
last commit and the wait for the next one, and through `environment` copies and figures. Handles of one process share
one environment, because LMDB opens a file once in a process.

Producers, consumers, readers and transactions read and write through their connection. A connection is thread-safe;
an object made from it is used by one thread at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import Never, TypeVar

from storage.disk import stores
from storage.disk.codec import key1, pack
from storage.disk.environment import Environment
from storage.disk.queued_writes import QueuedWrites
from storage.disk.reserve import ReserveShare
from storage.disk.schema import LEASES
from storage.disk.superblock import Superblock
from storage.disk.view import ReadView, WriteBatch
from storage.errors import StoreClosed, StoreInvalid, WriterBusy
from storage.limits import GATE_MIN_S
from storage.process.clock import Clock
from storage.process.identity import ProcessIdentity, this_process
from storage.process.writer_gate import OnWait
from storage.values.store_incarnation import StoreIncarnation

T = TypeVar("T")

_open: dict[tuple[int, str], tuple[Environment, int]] = {}
_open_lock = threading.Lock()
_left_open: set[str] = set()
"""Paths of stores whose environment this process, a child of a fork, could not close."""


def _before_fork() -> None:
    _open_lock.acquire()
    for environment, _ in _open.values():
        environment.before_fork()


def _after_fork_in_parent() -> None:
    for environment, _ in _open.values():
        environment.after_fork()
    _open_lock.release()


def _after_fork_in_child() -> None:
    global _open_lock
    _open_lock = threading.Lock()
    for environment, _ in _open.values():
        if not environment.forked():
            _left_open.add(environment.path)
    _open.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)


class Connection:
    """One handle on a store; see the module. A closed handle reads and writes nothing.

    Attributes:
        clock: the clock of the store: on a server the server's, since clocks of clients do not count.
        is_closed: whether the handle was closed.
        reads_at_once: whether a read may pass by `view`: the handle is open, and no thread has writes queued on it.
        view: opens one consistent view; what this thread has queued is written first.
        before_close: called before the handle is closed, each by its owner.
    """

    def __init__(
        self,
        path: str,
        clock: Clock,
        *,
        read_only: bool,
        lock_timeout_s: float,
        on_wait: OnWait | None,
        program: str | None,
    ) -> None:
        self.lock_timeout_s = lock_timeout_s
        self.on_wait = on_wait
        self.read_only = read_only
        self._program = program
        self._lease = 0
        self.is_closed = False
        self._overdue: list[Callable[[WriteBatch], object]] = []
        self._queues: dict[int, QueuedWrites] = {}
        self.before_close: dict[object, Callable[[], None]] = {}
        self.path = stores.resolved(path)
        self._environment = _acquire(self.path, path, clock, read_only, lock_timeout_s, on_wait)
        self.clock = self._environment.clock
        self._commit_wait = self._environment.commit_wait()
        self._write = self._environment.writer.write
        self.view: Callable[[], AbstractContextManager[ReadView]] = self._environment.view
        self.reads_at_once = True

    @property
    def environment(self) -> Environment:
        """The environment, which all handles of this process on the store share.

        Raises:
            StoreClosed: the handle was closed.
        """
        if self.is_closed:
            self._refuse()
        return self._environment

    @cached_property
    def incarnation(self) -> StoreIncarnation:
        """The store that the handle is on: handles with equal incarnations are on one store.

        The first look opens a view, and so comes outside of views and batches.
        """
        with self.view() as view:
            return StoreIncarnation(self.path, view.superblock.store_id, view.superblock.incarnation)

    def gate_s(self, until_ns: int) -> float:
        """How long a call that ends at `until_ns` of the boot clock waits for the writer gate, in seconds.

        The lock timeout or the rest of the call, the shorter one. A tenth of a second is always left for a turn in
        the queue: a caller that polls with a timeout of 0 would find a busy gate taken each time.
        """
        left_s = (until_ns - self.clock.boot_ns()) / 1e9
        return min(self.lock_timeout_s, max(left_s, GATE_MIN_S))

    def cap_lock_timeout(self, seconds: float) -> None:
        """Wait at most this long for the writer gate, and for locks of a server, from now on."""
        self.lock_timeout_s = min(self.lock_timeout_s, seconds)
        self._environment.cap_limit(seconds)

    @cached_property
    def identity(self) -> ProcessIdentity:
        """The identity of this process, as records name it."""
        return this_process(self.clock, self._program)

    def write(
        self,
        change: Callable[[WriteBatch], T],
        *,
        naming: int = 0,
        dry_run: bool = False,
        timeout_s: float | None = None,
        share: ReserveShare = ReserveShare.NONE,
    ) -> T:
        """Run `change` in one durable store transaction, behind what this thread has queued; see `Writer.write`."""
        if self.is_closed or self.read_only:
            self.check_writable()
        if self._queues and (queue := self.queue) is not None and not queue.is_running:
            return queue.write_behind(change, naming, dry_run, timeout_s, share)
        if self._overdue:
            self._catch_up(self.lock_timeout_s)
        return self._write(
            change,
            naming=naming,
            timeout_s=self.lock_timeout_s if timeout_s is None else timeout_s,
            on_wait=self.on_wait,
            dry_run=dry_run,
            share=share,
        )

    @property
    def queue(self) -> QueuedWrites | None:
        """The writes that this thread has queued on the handle, within a group; None outside of groups."""
        return self._queues.get(threading.get_ident())

    def queue_writes(self, queue: QueuedWrites | None, thread: int) -> None:
        """Queue the coming writes of a thread; None ends that."""
        if queue is None:
            self._queues.pop(thread, None)
        else:
            self._queues[thread] = queue
        if not self.is_closed:
            self.reads_at_once = not self._queues
            self.view = self._environment.view if self.reads_at_once else self._view_behind_queue

    def _view_behind_queue(self) -> AbstractContextManager[ReadView]:
        queue = self.queue
        if queue is not None:
            queue.flush_ends()
        return self.environment.view()

    def rehearse(self, change: Callable[[WriteBatch], T], naming: int = 0) -> T:
        """Run `change` dry, without the writer gate; see `Writer.rehearse`."""
        if self.is_closed or self.read_only:
            self.check_writable()
        if self._queues and (queue := self.queue) is not None:
            queue.flush_ends()
        return self._environment.writer.rehearse(change, naming)

    def upgrade(self, change: Callable[[WriteBatch], T], naming: int, dry_run: bool) -> T:
        """Run the change that upgrades a store of an earlier format; see `Writer.upgrade`."""
        writer = self.environment.writer
        return writer.upgrade(change, naming, dry_run, self.lock_timeout_s, self.on_wait)

    def check_writable(self) -> None:
        """Raises:
        StoreClosed: the handle was closed, or was opened before this process was forked.
        StoreInvalid: the handle is for reading only.
        OldFormat: the store has an earlier format.
        """
        if self.is_closed:
            self._refuse()
        if self.read_only:
            raise StoreInvalid(
                f"this handle of {self.path} is for reading only", hint="Open it with read_only=False."
            )
        state = self._environment.usability
        if state.failed is not None or state.read_only or state.is_old:
            self._environment.check_written()

    def recorded_view(self, record: Callable[[ReadView, int], None]) -> AbstractContextManager[ReadView]:
        """Open a view for a serializable read; see `RecordedView`."""
        if self.is_closed:
            self._refuse()
        return self._environment.recorded_view(record, self.lock_timeout_s, self.on_wait)

    def look_at_superblock(self, look: Callable[[Superblock, int], T]) -> T:
        """Run `look` inside the writer gate on the superblock; see `recorded_view.look_at_superblock`."""
        if self.is_closed or self.read_only:
            self.check_writable()
        return self._environment.look_at_superblock(look, self.lock_timeout_s, self.on_wait)

    def await_commits(self) -> None:
        """Wait until views show every commit of a writer that has ended; see `Environment.await_commits`."""
        if self.is_closed:
            self._refuse()
        self._environment.await_commits(self.lock_timeout_s, self.on_wait)

    def write_sometime(self, change: Callable[[WriteBatch], object], timeout_s: float) -> None:
        """Write a change that may wait: now if the gate is free, else before the next write of this connection."""
        self._overdue.append(change)
        with suppress(WriterBusy):
            self._catch_up(timeout_s)

    def _catch_up(self, timeout_s: float) -> None:
        while self._overdue:
            self._write(self._overdue[0], timeout_s=timeout_s, on_wait=self.on_wait)
            self._overdue.pop(0)

    def lease(self, batch: WriteBatch) -> int:
        """The number of this connection's lease, which is held while the process lives and is recorded in the store.

        The kernel lock is taken before the record is committed, so a living owner holds every recorded lease. If the
        batch fails, this connection keeps the number: the next process that is issued the number meets the locked
        byte and takes the following number.
        """
        if not self._lease:
            number = batch.superblock.last_lease + 1
            while not batch.locks.leases.hold(number):
                number += 1
            self._lease = number
        if not batch.has(LEASES, key1(self._lease)):
            batch.superblock.last_lease = max(batch.superblock.last_lease, self._lease)
            batch.put(LEASES, key1(self._lease), pack(self.identity.fields()))
        return self._lease

    def wait_for_commit(self, seen: int, until_ns: int) -> bool:
        """Sleep until views show a commit after `seen`, or the boot clock reaches `until_ns`; see `CommitWait`.

        Args:
            seen: the commit number of the caller's last view.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        if self.is_closed:
            self._refuse()
        return self._commit_wait.wait(seen, until_ns)

    def look_in_place(self) -> None:
        """Check, at most once a second, that the store is still at its path; for callers that poll.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        self.environment.look_in_place()

    def close(self) -> None:
        if not self.is_closed:
            for call in list(self.before_close.values()):
                call()
            self.is_closed, self.view, self.reads_at_once = True, self._refuse, False
            try:
                if self._lease and self._environment.pid == os.getpid():
                    self._environment.locks.leases.drop(self._lease)
            finally:
                _release(self._environment)

    def _refuse(self) -> Never:
        raise StoreClosed(f"this handle of {self.path} is closed")


def _acquire(
    path: str, name: str, clock: Clock, read_only: bool, timeout_s: float, on_wait: OnWait | None
) -> Environment:
    """Open the environment of a store, or share the one that this process has open; a count keeps track.

    Args:
        name: as the caller named the store, with a password if the name has one.
    """
    key = (os.getpid(), path)
    with _open_lock:
        environment, count = _open.get(key, (None, 0))
        if environment is not None and environment.may_open_anew:
            environment, count = None, 0
        if environment is not None and environment.read_only and not read_only:
            environment.reopen_for_writing(timeout_s, on_wait)
        if path in _left_open:
            raise StoreInvalid(
                f"{path} cannot be opened after this fork: the parent was inside a long read of it",
                hint="Fork before a backup or verify begins, or start the child anew (spawn).",
            )
        if environment is None:
            environment = stores.opened(
                name if stores.is_url(name) else path, clock, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait
            )  # fmt: skip
        _open[key] = (environment, count + 1)
        return environment


def _release(environment: Environment) -> None:
    """Count a handle as closed; nothing in a child of a fork, where the parent's environment is not counted."""
    key = (os.getpid(), environment.path)
    with _open_lock:
        current, count = _open.get(key, (None, 0))
        if current is not environment:
            return
        if count > 1:
            _open[key] = (environment, count - 1)
        else:
            del _open[key]
            environment.close()
