"""Kernel-held liveness: the lock file of a store.

One file, byte-range locks of the kernel (open file description locks), which it drops when the last descriptor goes:
at exit, at kill -9, whatever happens. Bytes of the file:

    0              the writer gate: who holds it may begin a store transaction
    1              the store lock: shared by every process that has the store open, exclusive for compact and restore
    2^20 + n       lease n: its process lives as long as the byte is locked; n is never used twice

At 64 stands pid and start time of the last that passed the gate: only a hint for people, names are not locks.
A forked child shares the descriptor, so that it could keep a dead parent's locks: it closes it at once.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Final

from storage.errors import (
    NotAStore,
    NotPermitted,
    PlatformUnsupported,
    StoreInUse,
    StoreNotFound,
    WriterBusy,
)
from storage.limits import LOCK_NOTE_S
from storage.process import identity
from storage.process.clock import Clock

GATE: Final = 0
STORE: Final = 1
_LEASES: Final = 1 << 20
_HOLDER_AT: Final = 64
_HOLDER = Struct(">QQ")
_LET_BY_S: Final = (0.002, 0.004, *[0.008] * 12)
"""How long who has not begun yet lets others go first: a tenth of a second in all, so that nobody is kept out."""

# struct flock: l_type, l_whence, padding, l_start, l_len, l_pid, padding. Where there are no open file description
# locks (macOS, where the fields come in another order), record locks do: only we open the file, once in a process.
_LINUX: Final = os.uname().sysname == "Linux"
_FLOCK = Struct("@hhqqi4x" if _LINUX else "@qqihh")
_SET: Final = getattr(fcntl, "F_OFD_SETLK", fcntl.F_SETLK)
_GET: Final = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)

FILE_NAME: Final = "store.lock"


def _flock(kind: int, byte: int) -> bytes:
    return (
        _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0) if _LINUX else _FLOCK.pack(byte, 1, 0, kind, os.SEEK_SET)
    )


def check_platform() -> None:
    """Raises:
    PlatformUnsupported: neither Linux nor macOS.
    """
    system = os.uname().sysname
    if system not in ("Linux", "Darwin"):
        raise PlatformUnsupported(
            f"txnctl needs the kernel locks of Linux; it does not run on {system}",
            hint="Run it on Linux, in a container or a virtual machine.",
        )


class LockFile:
    """The open lock file of one store in one process."""

    __slots__ = ("_clock", "_descriptor", "_held", "_in_process", "_path", "_started", "_status")

    def __init__(self, path: str, clock: Clock, *, writable: bool) -> None:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC | os.O_NOFOLLOW
        self._path = path
        self._descriptor = os.open(path, flags)
        self._status = os.fstat(self._descriptor)
        self._held: set[int] = set()
        self._clock = clock
        self._in_process = threading.RLock()
        self._started = -1

    def close(self) -> None:
        """Let go of everything."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def check_in_place(self) -> None:
        """What is written into removed files nobody would ever read, and nobody else would ever commit to them.

        Raises:
            StoreNotFound: the store was removed, moved or replaced since it was opened.
        """
        is_in_place = False
        with suppress(OSError):
            is_in_place = os.path.samestat(self._status, os.stat(self._path))
        if not is_in_place:
            raise StoreNotFound(
                f"the store at {os.path.dirname(self._path)} was removed, moved or replaced while it was open",
                hint="What is at that path now, if anything, is another store: open it anew.",
            )

    def _try(self, kind: int, byte: int) -> bool:
        try:
            fcntl.fcntl(self._descriptor, _SET, _flock(kind, byte))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def share_store(self) -> None:
        """Take the store lock with others.

        Raises:
            StoreInUse: somebody has it alone.
        """
        if not self._try(fcntl.F_RDLCK, STORE):
            raise StoreInUse(
                "the store is being compacted, upgraded or restored", hint="Try again when it is done."
            )

    def own_store(self) -> bool:
        """Take the store lock alone; False if others have the store open."""
        return self._try(fcntl.F_WRLCK, STORE)

    def hold_lease(self, lease: int) -> bool:
        """Lock the byte of a lease for as long as this process lives; False if somebody has it.

        The kernel keeps other processes out. Handles of one process share a descriptor: they are kept apart here.
        """
        if lease in self._held or not self._try(fcntl.F_WRLCK, _LEASES + lease):
            return False
        self._held.add(lease)
        return True

    def drop_lease(self, lease: int) -> None:
        self._held.discard(lease)
        self._try(fcntl.F_UNLCK, _LEASES + lease)

    def is_held(self, lease: int) -> bool:
        """Whether a process, this one included, holds the lease: proof that its owner lives."""
        return lease in self._held or self._is_locked(_LEASES + lease)

    def state(self, lease: int, holder: identity.ProcessIdentity, boot_id: bytes) -> str:
        """What is proven of the process that took a lease: alive, stopped, dead, rebooted or unknown-host."""
        if self.is_held(lease):
            return "stopped" if identity.is_stopped(holder.pid, holder.started) else "alive"
        if holder.boot_id != boot_id:
            return "rebooted" if holder.host == os.uname().nodename else "unknown-host"
        return "dead"

    def gate_is_held(self) -> bool:
        return self._is_locked(GATE)

    def _is_locked(self, byte: int) -> bool:
        answer = _FLOCK.unpack(fcntl.fcntl(self._descriptor, _GET, _flock(fcntl.F_WRLCK, byte)))
        return bool(answer[0 if _LINUX else 3] != fcntl.F_UNLCK)

    def back_off(self, timeout_s: float) -> None:
        """For who is about to begin something that passes the gate several times: while it is held, hold back a little.

        Those in the middle of theirs finish first, so that fewer are under way at once and contradict each other.
        """
        waited = 0.0
        for pause in _LET_BY_S:
            if waited >= timeout_s or not self.gate_is_held():
                return
            self._clock.sleep(pause)
            waited += pause

    def enter_gate(self, timeout_s: float, on_wait: Callable[[str, float], None] | None) -> None:
        """Pass the writer gate; interruptible.

        Args:
            timeout_s: how long to wait.
            on_wait: told once, after a second, who holds the gate and how long it was waited for.

        Raises:
            WriterBusy: the gate was not free in time.
        """
        if not self._in_process.acquire(timeout=timeout_s):
            raise WriterBusy(
                f"another thread of this process held the writer gate for {timeout_s:g} s", hint="Try again."
            )
        if not self._try(fcntl.F_WRLCK, GATE):
            self._wait_for_gate(timeout_s, on_wait)
        self._sign()

    def _wait_for_gate(self, timeout_s: float, on_wait: Callable[[str, float], None] | None) -> None:
        clock, pause, told = self._clock, 0.00005, False
        began = clock.boot_ns()
        while not self._try(fcntl.F_WRLCK, GATE):
            waited = (clock.boot_ns() - began) / 1e9
            if waited >= timeout_s:
                raise WriterBusy(
                    f"the writer gate was not free within {timeout_s:g} s: {self.gate_holder()} holds it",
                    hint="Try again, raise --lock-timeout, or look at `txnctl store locks`.",
                    holder=self.gate_holder(),
                )
            if waited >= LOCK_NOTE_S and not told and on_wait is not None:
                told = True
                on_wait(self.gate_holder(), waited)
            clock.sleep(pause)
            pause = min(pause * 1.5, 0.002)

    def _sign(self) -> None:
        if self._started < 0:
            self._started = identity.started(os.getpid())
        signature = _HOLDER.pack(os.getpid(), self._started)
        # A hint for people only: a full disk must not keep the gate from being used. To read costs less than to write.
        with suppress(OSError):
            if os.pread(self._descriptor, _HOLDER.size, _HOLDER_AT) != signature:
                os.pwrite(self._descriptor, signature, _HOLDER_AT)

    def stop_threads(self, timeout_s: float) -> bool:
        """Keep every thread of this process from the gate, as long as the process forks; False if one has it."""
        return self._in_process.acquire(timeout=timeout_s)

    def let_threads_go(self) -> None:
        """The fork is done."""
        self._in_process.release()

    def leave_gate(self) -> None:
        """Leave it, if this thread is in it: called whatever became of `enter_gate`, an interrupt included.

        The lock between threads knows its owner, so that what an interrupt left taken is found and given back.
        """
        while self._in_process._is_owned():  # type: ignore[attr-defined]
            self._try(fcntl.F_UNLCK, GATE)
            self._in_process.release()

    def gate_signature(self) -> tuple[int, int] | None:
        """Pid and start time of the last process that passed the gate."""
        data = os.pread(self._descriptor, _HOLDER.size, _HOLDER_AT)
        return _HOLDER.unpack(data) if len(data) == _HOLDER.size else None

    def gate_holder(self) -> str:
        """The last process that passed the gate, in words."""
        signature = self.gate_signature()
        return identity.describe(*signature) if signature else "an unknown process"


def open_locks(path: str, clock: Clock, *, read_only: bool) -> LockFile:
    """The lock file of the store at `path`.

    Raises:
        NotAStore, NotPermitted
    """
    lock_path = os.path.join(path, FILE_NAME)
    try:
        return LockFile(lock_path, clock, writable=not read_only)
    except FileNotFoundError:
        raise NotAStore(f"{path} is not a whole store: {FILE_NAME} is missing") from None
    except OSError as error:
        raise NotPermitted(f"cannot open {lock_path}: {error.strerror}") from None


def _is_file(descriptor: os.DirEntry[str], wanted: os.stat_result) -> bool:
    try:
        status = descriptor.stat()
    except OSError:
        return False  # closed since it was listed
    return (status.st_dev, status.st_ino) == (wanted.st_dev, wanted.st_ino)


def processes_with(path: str) -> list[int]:
    """Pids of the processes that have the lock file open, as far as this user may see."""
    wanted, found = os.stat(path), []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self/fd") else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with os.scandir(f"/proc/{name}/fd") as descriptors:
                if any(_is_file(each, wanted) for each in descriptors):
                    found.append(int(name))
        except OSError:
            continue
    return found
