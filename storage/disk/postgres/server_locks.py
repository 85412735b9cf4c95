"""The locks of a store on a server: advisory locks of sessions, which the server drops with the session.

Each store has two numbers of its own, drawn when it is made, as the first halves of its lock keys: one for leases,
whose second half is the number of the lease, and one for the store: gate (0), the store in use (1), waits for commits
(2), the copy that builds the store (3).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Final

from storage.disk.postgres.binary import as_bool, as_int, int4, int8, int8_array
from storage.disk.postgres.layout import (
    DROP_LEASE,
    DROP_TIMESTAMPS,
    HELD_LEASES,
    HOLD_TIMESTAMP,
    LOWEST_TIMESTAMP,
    TRY_LEASE,
)
from storage.disk.postgres.session import Overtaken, Session, Step
from storage.process.clock import Clock
from storage.process.identity import ProcessIdentity, is_stopped
from storage.process.open_timestamps import HeldTimestamps

STORE_IN_USE: Final = 1
WAITS: Final = 2
COPYING: Final = 3
_PRESENCE_FROM: Final = 1 << 16
_PRESENCES: Final = 1 << 30

OpenSession = Callable[[], AbstractContextManager[Session]]


class SharedLeases:
    """The numbers of the leases that this process holds; all its sessions know them.

    Attributes:
        released: leases that the session of batches, which took them, has still to let go of.
    """

    __slots__ = ("_send_released", "held", "released")

    def __init__(self, send_released: Callable[[], None]) -> None:
        """Args:
        send_released: sends releases, unless the session of batches is in use.
        """
        self._send_released = send_released
        self.held: set[int] = set()
        self.released: deque[int] = deque()

    def release(self, lease: int) -> None:
        """Let go of a lease; any thread may call."""
        self.held.discard(lease)
        self.released.append(lease)
        self._send_released()

    def steps(self, lock_class: int) -> list[Step]:
        """The steps that drop released leases; `note_sent` follows."""
        return [(DROP_LEASE, (int4(lock_class), int4(lease))) for lease in self.released.copy()]

    def note_sent(self, steps: Sequence[Step]) -> None:
        """Forget the releases of which steps were sent."""
        for _ in steps:
            self.released.popleft()


class ServerLeases:
    """Leases as one session asks for them.

    The answer of the server is kept until the next view or batch: a lease that a record names was taken before the
    record was committed.
    """

    __slots__ = ("_class", "_held_by_all", "_in_gate", "_own", "_session")

    def __init__(self, session: Session, lock_class: int, own: SharedLeases) -> None:
        self._session = session
        self._class = lock_class
        self._own = own
        self._held_by_all: set[int] | None = None
        self._in_gate = True

    def forget(self, *, in_gate: bool = True) -> None:
        """Ask the server again from now on: a view or batch begins.

        Args:
            in_gate: False for a batch that is made without the gate.
        """
        self._held_by_all, self._in_gate = None, in_gate

    def hold(self, lease: int) -> bool:
        """Hold a lease as long as the session lives; False if the lease is taken.

        Raises:
            Overtaken: the batch is made without the gate, so that the number may be of a process that recorded the
                number behind the last commit known here, and died: its records would pass as those of this process.
        """
        if not self._in_gate:
            raise Overtaken
        if lease in self._own.held:
            return False
        (rows,) = self._session.run_steps(((TRY_LEASE, (int4(self._class), int4(lease))),))
        if not as_bool(rows[0][0]):
            return False
        self._own.held.add(lease)
        return True

    def drop(self, lease: int) -> None:
        """Let go of a lease of this process. With a lost session the lease is gone, known or found out just now."""
        self._own.release(lease)

    def release_steps(self) -> list[Step]:
        """The steps of the session of batches that drop released leases."""
        return self._own.steps(self._class)

    def note_sent(self, steps: Sequence[Step]) -> None:
        """Forget the releases of which steps were sent."""
        self._own.note_sent(steps)

    @property
    def has_released(self) -> bool:
        """Whether releases wait to be sent."""
        return bool(self._own.released)

    def is_held(self, lease: int) -> bool:
        if lease in self._own.held:
            return True
        if self._held_by_all is None:
            (rows,) = self._session.run_steps(((HELD_LEASES, (int8(self._class),)),))
            self._held_by_all = {as_int(row[0]) for row in rows}
        return lease in self._held_by_all

    def state_of(self, lease: int, holder: ProcessIdentity, boot_id: bytes) -> str:
        """The proven state of the process that took a lease: alive, stopped or dead.

        A stopped process is known as such on its own host alone.
        """
        if not self.is_held(lease):
            return "dead"
        is_here = (holder.host, holder.boot_id) == (os.uname().nodename, boot_id)
        return "stopped" if is_here and is_stopped(holder.pid, holder.started) else "alive"


class ServerTimestamps:
    """The timestamps of transactions that are open in a process and have no record: rows, and a lock for the process.

    A row counts as long as its process holds the lock of its *presence*, a random number. Rows are written with the
    pass of the gate that issues the timestamp. A release is sent at once if the session is idle, or behind its use.
    """

    __slots__ = (
        "_clock",
        "_held",
        "_lock_class",
        "_presence",
        "_released",
        "_send_released",
        "_sent",
        "_session",
        "_to_hold",
        "_views",
    )

    def __init__(
        self,
        session: Session,
        views: OpenSession,
        send_released: Callable[[], None],
        lock_class: int,
        clock: Clock,
    ) -> None:
        """Args:
        session: the session of batches, which holds the lock.
        views: opens the session of views.
        send_released: sends releases, unless the session of batches is in use.
        """
        self._send_released = send_released
        self._session = session
        self._views = views
        self._lock_class = lock_class
        self._clock = clock
        self._presence = 0
        self._held = HeldTimestamps()
        self._to_hold: list[int] = []
        self._released: deque[int] = deque()
        self._sent = 0, 0

    def hold(self, timestamp: int, deadline_ns: int) -> None:
        """Hold a timestamp that is about to be issued, inside the gate."""
        for overdue in self._held.overdue(self._clock.boot_ns()):
            self.release(overdue)
        if not self._presence:
            self._take_presence()
        self._held.note_held(timestamp, deadline_ns)
        self._to_hold.append(timestamp)

    def _take_presence(self) -> None:
        while not self._presence:
            number = _PRESENCE_FROM + int.from_bytes(os.urandom(4), "big") % _PRESENCES
            (rows,) = self._session.run_steps(((TRY_LEASE, (int4(self._lock_class), int4(number))),))
            self._presence = number if as_bool(rows[0][0]) else 0

    def release(self, timestamp: int) -> None:
        """Let go of a timestamp; any thread may call, a finalizer too."""
        if self._held.remove(timestamp):
            self._released.append(timestamp)
            self._send_released()

    @property
    def has_released(self) -> bool:
        """Whether releases wait to be sent."""
        return bool(self._released)

    def steps(self) -> list[Step]:
        """The steps that write what was held and released; `note_stored` follows, unless they come to nothing."""
        held, released = list(self._to_hold), list(self._released.copy())
        self._sent = len(held), len(released)
        steps: list[Step] = [(HOLD_TIMESTAMP, (int8(timestamp), int4(self._presence))) for timestamp in held]
        if released:
            steps.append((DROP_TIMESTAMPS, (int8_array(released),)))
        return steps

    def note_stored(self) -> None:
        """Forget what the last steps have written."""
        held, released = self._sent
        self._sent = 0, 0
        del self._to_hold[:held]
        for _ in range(released):
            self._released.popleft()

    def lowest(self, up_to: int) -> int | None:
        """The lowest timestamp up to a bound that a process holds, this one included; None if there is none."""
        own = self._held.lowest(up_to)
        # Rows of this process may be of releases that are under way.
        with self._views() as session:
            parameters = int8(up_to), int8(self._lock_class), int4(self._presence)
            ((row,),) = session.run_steps(((LOWEST_TIMESTAMP, parameters),))
        others = None if row[0] is None else as_int(row[0])
        return min((held for held in (own, others) if held is not None), default=None)


class ServerLocks:
    """The locks of a store as one session asks for them."""

    __slots__ = ("leases", "open_timestamps")

    def __init__(self, leases: ServerLeases, open_timestamps: ServerTimestamps) -> None:
        self.leases = leases
        self.open_timestamps = open_timestamps

    def begins_round(self, subscription_id: int, now_ns: int) -> bool:  # noqa: ARG002
        """Always: one answer of the server has all leases."""
        return True
