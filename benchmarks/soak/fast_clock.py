"""A clock that runs faster than the machine's, the same one in all processes of a soak.

Retention, deadlines and the keeping of old outcomes go by it; pauses between two looks at something stay as they are.
"""

from __future__ import annotations

import time

from storage.process.clock import SYSTEM_CLOCK, Clock


class FastClock(Clock):
    """A clock that passes `speed` seconds in each, from `origin_ns` of the machine's boot clock on."""

    __slots__ = ("origin_ns", "origin_wall_ns", "speed")

    def __init__(self, speed: int, origin_ns: int | None = None, origin_wall_ns: int | None = None) -> None:
        self.speed = speed
        self.origin_ns = SYSTEM_CLOCK.boot_ns() if origin_ns is None else origin_ns
        self.origin_wall_ns = time.time_ns() if origin_wall_ns is None else origin_wall_ns

    def boot_ns(self) -> int:
        return self.origin_ns + (SYSTEM_CLOCK.boot_ns() - self.origin_ns) * self.speed

    def shared_ns(self) -> int:
        return self.boot_ns()

    def wall_ns(self) -> int:
        return self.origin_wall_ns + (SYSTEM_CLOCK.boot_ns() - self.origin_ns) * self.speed

    def arguments(self) -> list[str]:
        """The clock as arguments of a command, for `of`."""
        return [str(self.speed), str(self.origin_ns), str(self.origin_wall_ns)]

    @classmethod
    def of(cls, arguments: list[str]) -> FastClock:
        """The clock that `arguments` names."""
        return cls(*map(int, arguments))
