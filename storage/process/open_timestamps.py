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
_LOOK_NS: Final = 1_000_000_000
_NEVER_NS: Final = 1 << 63


class HeldTimestamps:
    """The timestamps that a process holds, each with the deadline of its transaction on the boot clock.

    A begin does not look at each of them: only once the first deadline has passed, and once a second at most.
    """

    __slots__ = ("_first_ns", "_look_ns", "deadlines_ns")

    def __init__(self) -> None:
        self.deadlines_ns: dict[int, int] = {}
        self._first_ns, self._look_ns = _NEVER_NS, 0

    def note_held(self, timestamp: int, deadline_ns: int) -> None:
        """Note a timestamp that is about to be issued."""
        self.deadlines_ns[timestamp] = deadline_ns
        self._first_ns = min(self._first_ns, deadline_ns)

    def overdue(self, now_ns: int) -> list[int]:
        """The timestamps whose deadline has passed, if a look is due."""
        if now_ns < self._first_ns or now_ns < self._look_ns:
            return []
        # Keys alone: a list of items makes a tuple each, and the garbage collection that this may start releases
        # timestamps of forgotten transactions.
        deadlines_ns = self.deadlines_ns
        held = list(deadlines_ns)
        overdue = [timestamp for timestamp in held if deadlines_ns.get(timestamp, _NEVER_NS) <= now_ns]
        left = (
            until_ns for timestamp in held if (until_ns := deadlines_ns.get(timestamp, _NEVER_NS)) > now_ns
        )
        self._first_ns, self._look_ns = min(left, default=_NEVER_NS), now_ns + _LOOK_NS
        return overdue

    def remove(self, timestamp: int) -> bool:
        """Forget a timestamp; False where another thread, or a finalizer, came first."""
        return self.deadlines_ns.pop(timestamp, None) is not None

    def lowest(self, up_to: int) -> int | None:
        """The lowest timestamp up to a bound; None if there is none."""
        return min((held for held in list(self.deadlines_ns) if held <= up_to), default=None)


class ByteTimestamps:
    """The open timestamps of one store: the ones this process holds, and the lowest that any process holds."""

    __slots__ = ("_clock", "_held", "_locks")

    def __init__(self, locks: ByteLocks, clock: Clock) -> None:
        self._locks = locks
        self._clock = clock
        self._held = HeldTimestamps()

    def hold(self, timestamp: int, deadline_ns: int) -> None:
        """Lock the byte of a timestamp; called before the timestamp is issued, inside the writer gate.

        Timestamps of transactions whose deadline has passed are released on the way: a program may have forgotten its
        transaction, which cannot commit any more.

        Args:
            deadline_ns: of the transaction, on the boot clock.
        """
        for overdue in self._held.overdue(self._clock.boot_ns()):
            self.release(overdue)
        # Noted before it is locked: `release` finds a lock that was taken just before an interrupt.
        self._held.note_held(timestamp, deadline_ns)
        is_free = self._locks.take_exclusive(_FIRST_BYTE + timestamp)
        assert is_free, "no timestamp is issued twice"

    def release(self, timestamp: int) -> None:
        """Unlock the byte of a timestamp of this process, if it is locked; any thread may call."""
        # Removed before it is unlocked: of two threads one unlocks.
        if self._held.remove(timestamp) and self._locks.descriptor >= 0:
            self._locks.release(_FIRST_BYTE + timestamp)

    def lowest(self, up_to: int) -> int | None:
        """The lowest timestamp up to a bound that a process holds, this one included; None if there is none."""
        lowest = self._held.lowest(up_to)
        while True:
            last = up_to if lowest is None else lowest - 1
            # The kernel reports any one of the locks in a range, and none of this process.
            byte = self._locks.find_taken(_FIRST_BYTE, _FIRST_BYTE + last)
            if byte is None:
                return lowest
            lowest = byte - _FIRST_BYTE
