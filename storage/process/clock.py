"""The clocks of the machine: the only source of time.

Wall time is recorded and shown, and never expires a deadline. Deadlines, leases and delays run on the *store clock*:
nanoseconds that grow while the machine runs (CLOCK_BOOTTIME) and go on from the last recorded reading after a
reboot, so that the rest of a deadline remains. `disk/superblock.py` keeps the reading.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from storage.errors import InvalidValue
from storage.process import futex
from storage.process.machine import boot_id

if TYPE_CHECKING:
    import select

# Only Linux has the first: elsewhere importing works, and opening a store says that the system is unsupported.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_WORD_PAUSE_S = 0.001
_INPUT_PAUSE_S = 0.01
_FOREVER_NS = 30 * 366 * 86_400 * 1_000_000_000


class Clock:
    """The machine's clocks. Every write batch reads the clocks several times, so a reading is one call of C code.

    Attributes:
        wall_ns: wall time in nanoseconds since 1970.
        boot_ns: nanoseconds since boot, counting suspension.
        boot_id: the id of this boot of the machine, 16 bytes, read once.
        shared_ns, shared_id: the clock that all processes of a store share, and its id: here the boot clock.
    """

    __slots__ = ()

    wall_ns: Callable[[], int] = staticmethod(time.time_ns)
    boot_ns: Callable[[], int] = staticmethod(partial(time.clock_gettime_ns, _BOOT_CLOCK))
    boot_id: Callable[[], bytes] = staticmethod(boot_id)
    shared_ns: Callable[[], int] = staticmethod(partial(time.clock_gettime_ns, _BOOT_CLOCK))
    shared_id: Callable[[], bytes] = staticmethod(boot_id)

    def wall_ms(self) -> int:
        """Wall time in milliseconds since 1970."""
        return self.wall_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def sleep_on_word(self, address: int, seen: int, seconds: float) -> bool:
        """Sleep until a word is woken, `seconds` at most; see `futex.wait`."""
        return futex.wait(address, seen, seconds)

    def sleep_on_input(self, inputs: select.poll, seconds: float) -> None:
        """Sleep until a registered descriptor has input, `seconds` at most."""
        inputs.poll(max(0.0, seconds) * 1000)

    def every(self, seconds: float, action: Callable[[], bool]) -> None:
        """Call `action` every `seconds` until it returns False, in a daemon thread."""
        from threading import Thread

        def run() -> None:
            self.sleep(seconds)
            while action():
                self.sleep(seconds)

        Thread(target=run, name="txnctl", daemon=True).start()


class ManualClock(Clock):
    """A clock that tests move by hand. `sleep` moves the clock, and the calls of `every` run in the moving thread."""

    __slots__ = ("_calls", "boot", "boot_now_ns", "wall_now_ns")

    def __init__(self, wall_ms: int = 1_700_000_000_000, boot: bytes = b"manual-boot-0001") -> None:
        self.wall_now_ns = wall_ms * 1_000_000
        self.boot_now_ns = 1_000_000_000
        self.boot = boot
        self._calls: list[tuple[int, float, Callable[[], bool]]] = []

    def wall_ns(self) -> int:
        return self.wall_now_ns

    def boot_ns(self) -> int:
        return self.boot_now_ns

    def boot_id(self) -> bytes:
        return self.boot

    def shared_ns(self) -> int:
        return self.boot_ns()

    def shared_id(self) -> bytes:
        return self.boot_id()

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def sleep_on_word(self, address: int, seen: int, seconds: float) -> bool:
        """Move the clock, unless a real thread or process wakes the word within a moment."""
        is_woken = futex.wait(address, seen, min(seconds, _WORD_PAUSE_S))
        if not is_woken:
            self.sleep(seconds)
        return is_woken

    def sleep_on_input(self, inputs: select.poll, seconds: float) -> None:
        """Move the clock, unless a real server or process sends input within a moment."""
        if not inputs.poll(min(seconds, _INPUT_PAUSE_S) * 1000):
            self.sleep(seconds)

    def every(self, seconds: float, action: Callable[[], bool]) -> None:
        self._calls.append((self.boot_now_ns + int(seconds * 1e9), seconds, action))

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on every clock."""
        until_ns = self.boot_now_ns + int(seconds * 1e9)
        while due := [call for call in self._calls if call[0] <= until_ns]:
            call = min(due, key=lambda call: call[0])
            self._calls.remove(call)
            self._move_to(call[0])
            if call[2]():
                self.every(*call[1:])
        self._move_to(until_ns)

    def _move_to(self, boot_ns: int) -> None:
        """Move forward only: a call may have moved the clock further."""
        if boot_ns > self.boot_now_ns:
            self.wall_now_ns += boot_ns - self.boot_now_ns
            self.boot_now_ns = boot_ns


def nanoseconds(seconds: Any, what: str) -> int:
    """Convert a caller's time span to nanoseconds; None and infinity become 30 years.

    Raises:
        InvalidValue: the span is negative, or no number; True is none.
    """
    if seconds is None:
        return _FOREVER_NS
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds >= 0:
        raise InvalidValue(f"{what} is 0 seconds or more, not {seconds}")
    return int(min(seconds, _FOREVER_NS / 1e9) * 1e9)


SYSTEM_CLOCK = Clock()
