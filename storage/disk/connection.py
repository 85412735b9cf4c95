"""One handle on a store in one process: the shared environment, who we are, how long we wait, our lease.

Everything that a caller holds (producer, consumer, reader, transaction) writes and reads through its connection.
Thread-safe; the things made from it are each used by one thread at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TypeVar

from storage.disk import directory
from storage.disk.codec import key1, pack
from storage.disk.data_map import OnWait
from storage.disk.environment import Environment
from storage.disk.schema import LEASES
from storage.disk.view import ReadView, WriteBatch
from storage.errors import StoreClosed, StoreInvalid, WriterBusy
from storage.limits import WAKE_S
from storage.process.clock import Clock
from storage.process.identity import ProcessIdentity, this_process

T = TypeVar("T")
_SHOWN_S = 0.001

_open: dict[tuple[int, str], tuple[Environment, int]] = {}
_open_lock = threading.Lock()


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
        environment.forked()
    _open.clear()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)


class Connection:
    """See the module."""

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
        self.clock = clock
        self.lock_timeout_s = lock_timeout_s
        self.on_wait = on_wait
        self.read_only = read_only
        self._program = program
        self._owner: ProcessIdentity | None = None
        self._lease = 0
        self._closed = False
        self._overdue: list[Callable[[WriteBatch], object]] = []
        self.path = directory.resolved(path, os.path.realpath)
        self.environment = _acquire(self.path, clock, read_only, lock_timeout_s, on_wait)
        self.view = self.environment.view

    def cap_lock_timeout(self, seconds: float) -> None:
        """Wait at most this long for the writer gate from now on."""
        self.lock_timeout_s = min(self.lock_timeout_s, seconds)

    @property
    def owner(self) -> ProcessIdentity:
        """This process, as others will see it."""
        if self._owner is None:
            self._owner = this_process(self.clock, self._program)
        return self._owner

    def write(
        self,
        change: Callable[[WriteBatch], T],
        *,
        naming: int = 0,
        dry_run: bool = False,
        timeout_s: float | None = None,
    ) -> T:
        """One durable store transaction; see `Writer.write`."""
        self.check_writable()
        if self._overdue:
            self._catch_up(self.lock_timeout_s)
        return self.environment.write(
            change,
            naming=naming,
            timeout_s=self.lock_timeout_s if timeout_s is None else timeout_s,
            on_wait=self.on_wait,
            dry_run=dry_run,
        )

    def check_writable(self) -> None:
        """Raises:
        StoreClosed: this handle was closed, or belongs to the process that forked this one.
        StoreInvalid: it is for reading only.
        """
        if self._closed:
            raise StoreClosed(f"this handle of {self.path} is closed")
        if self.read_only:
            raise StoreInvalid(
                f"this handle of {self.path} is for reading only", hint="Open it with read_only=False."
            )
        self.environment.check_usable()

    def recorded_view(self, record: Callable[[ReadView], None]) -> AbstractContextManager[ReadView]:
        """A view for a serializable read; see `Writer.recorded_view`."""
        if self._closed:
            raise StoreClosed(f"this handle of {self.path} is closed")
        return self.environment.recorded_view(record, self.lock_timeout_s, self.on_wait)

    def write_sometime(self, change: Callable[[WriteBatch], object], timeout_s: float) -> None:
        """A change that must not be lost, but may wait: made now if the gate is free, else before our next write."""
        self._overdue.append(change)
        with suppress(WriterBusy):
            self._catch_up(timeout_s)

    def _catch_up(self, timeout_s: float) -> None:
        while self._overdue:
            self.environment.write(self._overdue[0], timeout_s=timeout_s, on_wait=self.on_wait)
            self._overdue.pop(0)

    def lease(self, batch: WriteBatch) -> int:
        """The number of this connection's lease, held while the process lives and recorded in the store.

        The kernel lock is taken before the record is committed, so that no recorded lease was ever unheld by a
        living owner. A number whose record did not get committed is still ours: whoever is issued it next finds
        its byte locked and takes the following one.
        """
        if not self._lease:
            number = batch.superblock.last_lease + 1
            while not batch.lock_file.hold_lease(number):
                number += 1
            self._lease = number
        if not batch.has(LEASES, key1(self._lease)):
            batch.superblock.last_lease = max(batch.superblock.last_lease, self._lease)
            batch.put(LEASES, key1(self._lease), pack(self.owner.fields()))
        return self._lease

    def wait_for_commit(self, seen: int, until_ns: int) -> bool:
        """Sleep until some process has committed since `seen`, or the boot clock reaches `until_ns`.

        Holds no view meanwhile, and looks every few milliseconds at a number in shared memory. The number may be ahead
        of what a view shows, so that the caller looks, finds nothing, and comes again: hence the first short sleep.
        Nobody commits to files that were removed: once a second it looks whether the store is still at its path.

        Args:
            seen: the commit of the view that was looked at.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        if self.environment.last_commit() != seen:
            self.clock.sleep(_SHOWN_S)
            return True
        while self.environment.last_commit() == seen:
            now_ns = self.clock.boot_ns()
            if now_ns >= until_ns:
                return False
            self.environment.look_in_place()
            self.clock.sleep(WAKE_S)
        return True

    def look_in_place(self) -> None:
        """For whoever asks again and again whether something new is there: look, once a second, whether it can come.

        Raises:
            StoreNotFound: the store was removed, moved or replaced.
        """
        self.environment.look_in_place()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._lease and self.environment.pid == os.getpid():
                self.environment.lock_file.drop_lease(self._lease)
            _release(self.path)


def _acquire(
    path: str, clock: Clock, read_only: bool, timeout_s: float, on_wait: OnWait | None
) -> Environment:
    """LMDB opens an environment once in a process: handles share it, counted."""
    key = (os.getpid(), path)
    with _open_lock:
        environment, count = _open.get(key, (None, 0))
        if environment is not None and environment.read_only and not read_only:
            environment.reopen_for_writing(timeout_s, on_wait)
        if environment is None:
            environment = Environment(path, clock, read_only=read_only, timeout_s=timeout_s, on_wait=on_wait)
        _open[key] = (environment, count + 1)
        return environment


def _release(path: str) -> None:
    key = (os.getpid(), path)
    with _open_lock:
        environment, count = _open.get(key, (None, 0))
        if environment is None:
            return
        if count > 1:
            _open[key] = (environment, count - 1)
        else:
            del _open[key]
            environment.close()
