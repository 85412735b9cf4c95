"""Timestamps of transactions that are open in a process and have no record: each a locked byte of the lock file.

A transaction attached to a process begins without a commit (docs/decisions/0015), so no record tells a reader that the
transaction may still write. Byte 2^40 + t is locked for timestamp t. The kernel drops the lock with the process, and
lists the locks of all processes; a lock on the file is no change of the file (docs/decisions/0030).
"""

from __future__ import annotations

from typing import Final

from storage.process.byte_locks import ByteLocks
from storage.process.clock import Clock

_FIRST_BYTE: Final = 1 << 40


class ByteTimestamps:
    """The open timestamps of one store: the ones this process holds, and the lowest that any process holds."""

    __slots__ = ("_clock", "_deadlines_ns", "_locks")

    def __init__(self, locks: ByteLocks, clock: Clock) -> None:
        self._locks = locks
        self._clock = clock
        self._deadlines_ns: dict[int, int] = {}

    def hold(self, timestamp: int, deadline_ns: int) -> None:
        """Lock the byte of a timestamp; called before the timestamp is issued, inside the writer gate.

        Timestamps of transactions whose deadline has passed are released on the way: a program may have forgotten its
        transaction, which cannot commit any more.

        Args:
            deadline_ns: of the transaction, on the boot clock.
        """
        if self._deadlines_ns:
            self._release_overdue()
        # Noted before it is locked: `release` finds a lock that was taken just before an interrupt.
        self._deadlines_ns[timestamp] = deadline_ns
        is_free = self._locks.take_exclusive(_FIRST_BYTE + timestamp)
        assert is_free, "no timestamp is issued twice"

    def _release_overdue(self) -> None:
        now_ns = self._clock.boot_ns()
        deadlines_ns = self._deadlines_ns
        # Keys alone: a list of items makes a tuple each, and the garbage collection that this may start releases
        # timestamps of forgotten transactions.
        for held in list(deadlines_ns):
            if deadlines_ns.get(held, now_ns + 1) <= now_ns:
                self.release(held)

    def release(self, timestamp: int) -> None:
        """Unlock the byte of a timestamp of this process, if it is locked; any thread may call."""
        # Popped before it is unlocked: of two threads one unlocks.
        if (
            timestamp in self._deadlines_ns
            and self._deadlines_ns.pop(timestamp, None) is not None
            and self._locks.descriptor >= 0
        ):
            self._locks.release(_FIRST_BYTE + timestamp)

    def lowest(self, up_to: int) -> int | None:
        """The lowest timestamp up to a bound that a process holds, this one included; None if there is none."""
        lowest = min((held for held in list(self._deadlines_ns) if held <= up_to), default=None)
        while True:
            last = up_to if lowest is None else lowest - 1
            # The kernel reports any one of the locks in a range, and none of this process.
            byte = self._locks.find_taken(_FIRST_BYTE, _FIRST_BYTE + last)
            if byte is None:
                return lowest
            lowest = byte - _FIRST_BYTE
