"""The only source of time.

Wall time is recorded and shown, and never expires anybody. Deadlines, leases and delays run on the *store clock*:
nanoseconds that grow while the machine runs (CLOCK_BOOTTIME) and go on from the last recorded reading after a
reboot, so that what remained of a deadline remains. `environment.py` keeps the reading; here is the machine's part.
"""

from __future__ import annotations

import os
import time
from typing import Any

from storage.errors import InvalidValue

_BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


_FOREVER_NS = 30 * 366 * 86_400 * 1_000_000_000


class Clock:
    """The machine's clocks."""

    __slots__ = ("_boot_id",)

    def __init__(self) -> None:
        self._boot_id: bytes | None = None

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as the machine believes."""
        return time.time_ns() // 1_000_000

    def wall_ns(self) -> int:
        """Nanoseconds since 1970, as the machine believes."""
        return time.time_ns()

    def boot_ns(self) -> int:
        """Nanoseconds since boot, counting suspension."""
        return time.clock_gettime_ns(_BOOT_CLOCK)

    def boot_id(self) -> bytes:
        """16 bytes that name this boot of the machine."""
        if self._boot_id is None:
            self._boot_id = _read_boot_id()
        return self._boot_id

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class ManualClock(Clock):
    """A clock that tests move by hand. Sleeping moves it."""

    __slots__ = ("boot", "boot_now_ns", "wall_now_ns")

    def __init__(self, wall_ms: int = 1_700_000_000_000, boot: bytes = b"manual-boot-0001") -> None:
        super().__init__()
        self.wall_now_ns = wall_ms * 1_000_000
        self.boot_now_ns = 1_000_000_000
        self.boot = boot

    def wall_ms(self) -> int:
        return self.wall_now_ns // 1_000_000

    def wall_ns(self) -> int:
        return self.wall_now_ns

    def boot_ns(self) -> int:
        return self.boot_now_ns

    def boot_id(self) -> bytes:
        return self.boot

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass on every clock."""
        self.boot_now_ns += int(seconds * 1e9)
        self.wall_now_ns += int(seconds * 1e9)


def nanoseconds(seconds: Any, what: str) -> int:
    """A span that a caller gave, as a number to add to a clock; None and infinity are 30 years.

    Raises:
        InvalidValue: it is negative, or no number.
    """
    if seconds is None:
        return _FOREVER_NS
    if not isinstance(seconds, int | float) or not seconds >= 0:
        raise InvalidValue(f"{what} is 0 seconds or more, not {seconds}")
    return int(min(seconds, _FOREVER_NS / 1e9) * 1e9)


def _read_boot_id() -> bytes:
    try:
        with open(_BOOT_ID_FILE, "rb") as file:
            return bytes.fromhex(file.read().strip().replace(b"-", b"").decode("ascii"))
    except OSError:
        # macOS: the boot session has a name of its own.
        with os.popen("sysctl -n kern.bootsessionuuid") as pipe:
            return bytes.fromhex(pipe.read().strip().replace("-", "") or "00" * 16)


SYSTEM_CLOCK = Clock()
