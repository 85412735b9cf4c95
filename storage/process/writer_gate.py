"""The writer gate: one process, and in the process one thread, writes to a store at a time.

Byte 0 of the lock file is the gate between processes, and a re-entrant lock is the gate between threads: these two
decide. Threads that wait, of this process and of others, stand in one queue (`gate_queue.py`), and the one that leaves
wakes the first. Without a wake page they look again after short sleeps.

Bytes 64 to 79 name the process that passed last (pid and start time): a hint for error messages, never proof.
`liveness.py` decides whether a process is dead.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from struct import Struct
from typing import Final

from storage.actions import Action, Hint, Keyword, resume
from storage.errors import StoreClosed, StoreNotFound, WriterBusy
from storage.limits import LOCK_NOTE_S
from storage.process import identity
from storage.process.byte_locks import SET, ByteLocks, flock
from storage.process.clock import Clock
from storage.process.gate_queue import GateQueue, QueuePlace
from storage.process.wake_page import QUEUED, WATCHED, WakePage
from storage.system_errors import refusal

OnWait = Callable[[str, float], None]
"""Called with the holder of the gate and the seconds waited so far."""

GATE_BYTE: Final = 0
_LOCK: Final = flock(fcntl.F_WRLCK, GATE_BYTE)
_UNLOCK: Final = flock(fcntl.F_UNLCK, GATE_BYTE)
_SIGNATURE_AT: Final = 64
_SIGNATURE = Struct(">QQ")
_SIGNATURE_END: Final = _SIGNATURE_AT + _SIGNATURE.size
_BACK_OFF_S: Final = (0.002, 0.004, *[0.008] * 12)
"""Pauses of `back_off`: a tenth of a second in all, so that a newcomer is not starved."""
_PAUSE_MIN_S: Final = 0.00005
_PAUSE_MAX_S: Final = 0.002
_PAUSE_GROWTH: Final = 1.5
"""Pauses between two looks without a wake page."""
_TURN_PASSES: Final = 16
"""Further passes in a turn before the commit: a transfer of two reads needs three, the time of half a commit."""
_TURN_NS: Final = 100_000_000


class _Turn:
    """The turn of a thread that has waited: further passes keep its ticket, up to the commit; see `enter`."""

    __slots__ = ("passes", "thread", "ticket", "until_ns")

    def __init__(self, ticket: int, until_ns: int) -> None:
        self.ticket = ticket
        self.thread = threading.get_ident()
        self.passes = _TURN_PASSES
        self.until_ns = until_ns


class WriterGate:
    """The gate of one store as one process sees it."""

    __slots__ = ("_clock", "_locks", "_own_signature", "_page", "_queue", "_status", "_threads", "_turn")

    def __init__(self, locks: ByteLocks, clock: Clock, page: WakePage) -> None:
        self._locks = locks
        self._status = os.fstat(locks.descriptor)
        self._clock = clock
        self._page = page
        self._queue = GateQueue(page, locks, clock)
        self._threads = threading.RLock()
        self._own_signature = b""
        self._turn: _Turn | None = None

    def enter(self, timeout_s: float, on_wait: OnWait | None, *, backs_off: bool = False) -> None:
        """Enter the gate, waiting if need be; an interrupt (Ctrl-C) ends the wait.

        A thread that has waited and left without a commit goes before those that came later: the reads and the commit
        of a transaction pass the gate one by one, and are one turn of at most 16 further passes and 0.1 s.

        Args:
            timeout_s: how long to wait.
            on_wait: called once, after a second of waiting for a different process.
            backs_off: pause first where the gate is in use; see `back_off`.

        Raises:
            WriterBusy: the gate was not free in time.
            StoreClosed: another thread closed the handle during the wait.
        """
        page = self._page
        if page.words[QUEUED] or not self._threads.acquire(False):
            if self._turn is None or not self._continue_turn():
                self._enter_in_turn(timeout_s, on_wait, backs_off)
        else:
            is_inside = True
            try:
                # As `take_exclusive`, in one call of C code; `_try` tells a gate in use from an error.
                fcntl.fcntl(self._locks.descriptor, SET, _LOCK)
            except OSError:
                is_inside = False
            if not is_inside:
                self._threads.release()
                self._enter_in_turn(timeout_s, on_wait, backs_off)
        data = page.data
        if data is None or data[_SIGNATURE_AT:_SIGNATURE_END] != self._own_signature:
            self._sign()

    def _continue_turn(self) -> bool:
        """Enter in a turn that goes on; False if the turn is over, or the gate was taken meanwhile."""
        turn = self._turn
        if turn is None or turn.thread != threading.get_ident():
            return False
        turn.passes -= 1
        if turn.passes < 0 or self._clock.boot_ns() > turn.until_ns:
            self._turn = None
            return False
        return self._try()

    def _enter_in_turn(self, timeout_s: float, on_wait: OnWait | None, backs_off: bool) -> None:
        if self._threads._is_owned():  # type: ignore[attr-defined]
            if self._try():
                return
            # An interrupt of `leave` came behind the unlocking: the thread lock alone is no gate.
            self.leave()
        try:
            if backs_off:
                self.back_off(timeout_s)
            self._queue_up(timeout_s, on_wait)
        except (AssertionError, LookupError, OSError, TypeError, ValueError) as error:
            # Page and descriptor are gone at once: which of them a waiting thread meets first is chance.
            if self._locks.descriptor >= 0:
                raise
            raise StoreClosed(
                f"the store at {os.path.dirname(self._locks.path)} was closed while this thread waited to write",
                hint="Nothing was written. Close a store after its threads have ended.",
            ) from error

    def _queue_up(self, timeout_s: float, on_wait: OnWait | None) -> None:
        page = self._page
        is_mapped = page.map(makes=True)
        # Without time to wait there is no turn: a flag that a killed process has left must not refuse a free gate.
        if (timeout_s <= 0 or not page.words[QUEUED]) and self._try():
            return
        turn = self._turn
        kept_ticket = 0
        # A thread that has ended its work without a commit, and has met no queue since, still has the turn of then.
        if (
            turn is not None
            and turn.thread == threading.get_ident()
            and self._clock.boot_ns() <= turn.until_ns
        ):
            kept_ticket = turn.ticket
        place = self._queue.join(kept_ticket) if is_mapped and timeout_s > 0 else None
        is_inside = False
        try:
            self._wait(place, timeout_s, on_wait)
            is_inside = True
        finally:
            if place is not None:
                self._queue.leave(place, is_inside=is_inside)
                if is_inside and place.ticket != kept_ticket:
                    self._turn = _Turn(place.ticket, self._clock.boot_ns() + _TURN_NS)

    def _try(self) -> bool:
        """Enter if neither a thread of this process nor a different process is inside."""
        if not self._threads.acquire(False):
            return False
        try:
            fcntl.fcntl(self._locks.descriptor, SET, _LOCK)
        except (OSError, ValueError) as error:  # ValueError: the descriptor was closed.
            self._threads.release()
            if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def _wait(self, place: QueuePlace | None, timeout_s: float, on_wait: OnWait | None) -> None:
        """Wait until the gate is entered, in turn; without a place, whenever the gate is found free."""
        clock, queue, pause_s = self._clock, self._queue, _PAUSE_MIN_S
        began_ns = clock.boot_ns()
        while True:
            # A place that was called is the first: a look at the queue would only keep the gate unused for longer.
            if (place is None or place.is_called or queue.is_first(place)) and self._try():
                return
            if place is not None and place.is_called:
                place.is_called = False
                continue
            waited_s = (clock.boot_ns() - began_ns) / 1e9
            if waited_s >= timeout_s:
                if self._try():
                    return
                raise self._busy(timeout_s)
            if on_wait is not None and waited_s >= LOCK_NOTE_S and self.is_held():
                on_wait(self.holder(), waited_s)
                on_wait = None
            if place is None:
                clock.sleep(pause_s)
                pause_s = min(pause_s * _PAUSE_GROWTH, _PAUSE_MAX_S)
            elif not queue.sleep(place, timeout_s - waited_s) and self._try():
                queue.drop(place)
                queue.pass_over_first()
                return

    def _busy(self, timeout_s: float) -> WriterBusy:
        """The error for a gate that was not free; a stopped holder leaves it only when continued."""
        if not self._threads.acquire(False):
            return WriterBusy(
                f"another thread of this process held the writer gate for {timeout_s:g} s", hint="Try again."
            )
        self._threads.release()
        signature, locks = self.signature(), Action("store.reports.list_locks")
        hint = Hint("Try again, raise {}, or look at `{}`.", Keyword("lock_timeout"), locks)
        if signature is not None and identity.is_stopped(*signature):
            hint = Hint(
                "Continue the stopped process with `{}`, or look at `{}`.",
                resume(signature[0]),
                locks,
            )
        holder = self.holder()
        return WriterBusy(
            f"the writer gate was not free within {timeout_s:g} s: held by {holder}", hint=hint, holder=holder
        )

    def _sign(self) -> None:
        if not self._own_signature:
            pid = os.getpid()
            self._own_signature = _SIGNATURE.pack(pid, identity.started(pid))
        # Reading costs less than writing, so an unchanged signature is left alone.
        try:
            if os.pread(self._locks.descriptor, _SIGNATURE.size, _SIGNATURE_AT) != self._own_signature:
                os.pwrite(self._locks.descriptor, self._own_signature, _SIGNATURE_AT)
        except OSError:
            pass  # A full disk must not keep the gate from being used: the signature is only a hint.

    def check_in_place(self) -> None:
        """Check that the lock file, and so the gate, is still the one at its path.

        Writes into removed files would be lost, and commits of newer processes would never be seen there.

        Raises:
            StoreNotFound: the store was removed, moved or replaced after it was opened.
            StoreInvalid: the disk does not say.
        """
        path = self._locks.path
        try:
            before, status = self._status, os.stat(path)
            is_in_place = status.st_ino == before.st_ino and status.st_dev == before.st_dev
        except (FileNotFoundError, NotADirectoryError):
            is_in_place = False
        except OSError as error:
            raise refusal(f"cannot look at {path}", error) from error
        if not is_in_place:
            raise StoreNotFound(
                f"the store at {os.path.dirname(path)} was removed, moved or replaced while it was open",
                hint="Open the path anew; a store found there now is another store.",
            )

    def leave(self) -> None:
        """Leave the gate if this thread is inside; called after every `enter`, an interrupted one included.

        The thread lock knows its owner, so a lock that an interrupt left taken is released here. A refused unlock is no
        error of the work inside, which may be committed: the lock goes with the next `leave`, or with the file.
        """
        try:
            threads, is_left = self._threads, False
            while threads._is_owned():  # type: ignore[attr-defined]
                try:
                    fcntl.fcntl(self._locks.descriptor, SET, _UNLOCK)
                except OSError:
                    self._locks.release(GATE_BYTE)
                threads.release()
                is_left = True
        except BaseException:
            self._unlock()
            raise
        # Looked at after the unlocking: a thread that joins the queue tries the gate once more before its sleep.
        if is_left and self._page.words[QUEUED] and self._page.is_mapped:
            self._queue.wake_first()

    def _unlock(self) -> None:
        """Leave the gate behind an interrupt of `leave`: an idle program would keep all writers out."""
        while self._threads._is_owned():  # type: ignore[attr-defined]
            self._locks.release(GATE_BYTE)
            self._threads.release()
        if self._page.words[QUEUED] and self._page.is_mapped:
            self._queue.wake_first()

    def announce_commit(self) -> None:
        """Wake the processes that wait for a commit, if any; called inside the gate, after a commit."""
        page, self._turn = self._page, None
        if page.words[WATCHED]:
            page.announce_commit()

    def back_off(self, timeout_s: float) -> None:
        """Pause, for a tenth of a second at most, while the gate is held; for a caller that is about to begin.

        Transactions in progress pass the gate several times. With a pause before each new one, the ones in progress
        finish first, so that fewer transactions run at once and conflict.
        """
        waited_s = 0.0
        for pause_s in _BACK_OFF_S:
            if waited_s >= timeout_s or not self.is_held():
                return
            self._clock.sleep(pause_s)
            waited_s += pause_s

    def is_held(self) -> bool:
        """Whether another process is inside the gate."""
        return self._locks.is_taken(GATE_BYTE)

    def signature(self) -> tuple[int, int] | None:
        """Pid and start time of the last process that passed the gate; None before the first."""
        data = os.pread(self._locks.descriptor, _SIGNATURE.size, _SIGNATURE_AT)
        return _SIGNATURE.unpack(data) if len(data) == _SIGNATURE.size else None

    def holder(self) -> str:
        """The last process that passed the gate, in words."""
        signature = self.signature()
        return identity.describe(*signature) if signature else "an unknown process"

    def stop_threads(self, timeout_s: float) -> bool:
        """Keep every thread of this process out of the gate until `let_threads_go`; False if a thread stayed inside."""
        return self._threads.acquire(timeout=timeout_s)

    def let_threads_go(self) -> None:
        """Let threads of this process enter the gate again."""
        self._threads.release()
        if self._page.is_mapped and self._page.words[QUEUED]:
            self._queue.wake_first()
