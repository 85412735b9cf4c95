"""The clock of a store on a server: wall time of the server, between two looks moved on by the machine's boot clock.

A server's clock that jumps must expire nobody. So the store clock goes on by no more than the machine's boot clock did
since this process's last look, or as far as others have recorded; the rest is kept as an offset in the superblock.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from copy import copy
from typing import Final

from storage.disk.postgres.binary import as_int
from storage.disk.postgres.layout import CLOCK
from storage.disk.postgres.session import Session
from storage.disk.superblock import Superblock
from storage.process.clock import Clock

_SHARED_ID: Final = b"postgresql-clock"
_TOLERATED_NS: Final = 1_000_000_000
"""Difference of both clocks that delays and drift may explain."""


class ServerClock(Clock):
    """See the module. Waits, and times inside this process, run on the machine's boot clock."""

    __slots__ = ("_looked_ns", "_machine", "_server_ns", "_store_ns", "_store_seen_ns")

    def __init__(self, machine: Clock) -> None:
        self._machine = machine
        self._server_ns = machine.wall_ns()
        self._looked_ns = machine.boot_ns()
        self._store_ns: int | None = None
        self._store_seen_ns = 0

    def look(self, server_us: int) -> None:
        """Take over a reading of the server's clock."""
        self._server_ns, self._looked_ns = server_us * 1000, self._machine.boot_ns()

    def ask(self, session: Session) -> None:
        """Take over a reading of the server's clock, at the price of a round trip."""
        (((server_us,),),) = session.run_steps(((CLOCK, ()),))
        self.look(as_int(server_us))

    def wall_ns(self) -> int:
        return self._server_ns + self._machine.boot_ns() - self._looked_ns

    def shared_ns(self) -> int:
        return self.wall_ns()

    def shared_id(self) -> bytes:
        return _SHARED_ID

    def boot_ns(self) -> int:
        return self._machine.boot_ns()

    def boot_id(self) -> bytes:
        return self._machine.boot_id()

    def sleep(self, seconds: float) -> None:
        self._machine.sleep(seconds)

    def sleep_on_word(self, address: int, seen: int, seconds: float) -> bool:
        return self._machine.sleep_on_word(address, seen, seconds)

    def sleep_on_input(self, inputs: select.poll, seconds: float) -> None:
        self._machine.sleep_on_input(inputs, seconds)

    def every(self, seconds: float, action: Callable[[], bool]) -> None:
        self._machine.every(seconds, action)

    def bounded(self, store_ns: int, recorded_ns: int) -> int:
        """The store clock, without a jump of the server's clock since this process's last look.

        Args:
            store_ns: by the server's clock.
            recorded_ns: by the last commit of any process: a bound from below.
        """
        if self._store_ns is None:
            return store_ns
        expected_ns = self._store_ns + self._machine.boot_ns() - self._store_seen_ns
        if abs(store_ns - expected_ns) <= _TOLERATED_NS:
            return store_ns
        return max(expected_ns, recorded_ns)

    def note(self, store_ns: int) -> None:
        """Note a reading of the store clock."""
        self._store_ns, self._store_seen_ns = store_ns, self._machine.boot_ns()

    def hold_back(self, superblock: Superblock) -> Superblock:
        """The superblock of a view, whose store clock goes on without a jump of the server's clock.

        Args:
            superblock: as stored; views share the object, so that a jump is kept in a copy.
        """
        read_ns = superblock.now_ns(self)
        store_ns = self.bounded(read_ns, superblock.last_clock_ns)
        if store_ns != read_ns:
            superblock = copy(superblock)
            superblock.clock_offset_ns += store_ns - read_ns
        self.note(store_ns)
        return superblock

    def keep_jump(self, superblock: Superblock, recorded_ns: int) -> int:
        """Keep a jump of the server's clock as offset, in a batch that has begun; return the store clock.

        Args:
            recorded_ns: the store clock as the commit before has recorded it.
        """
        read_ns = superblock.last_clock_ns
        store_ns = self.bounded(read_ns, recorded_ns)
        if store_ns != read_ns:
            superblock.clock_offset_ns += store_ns - read_ns
            superblock.last_clock_ns = store_ns
        self.note(store_ns)
        return store_ns
