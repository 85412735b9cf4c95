"""The locks of a store on a server: advisory locks of sessions, which the server drops with the session.

Each store has two numbers of its own, drawn when it is made, as the first halves of its lock keys: one for leases,
whose second half is the number of the lease, and one for the store: gate (0), the store in use (1), waits for commits
(2).
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Final

from storage.disk.postgres.binary import as_bool, as_int, int4, int8
from storage.disk.postgres.layout import DROP_LEASE, HELD_LEASES, TRY_LEASE
from storage.disk.postgres.session import Session
from storage.errors import ServerLost
from storage.process.identity import ProcessIdentity, is_stopped

STORE_IN_USE: Final = 1
WAITS: Final = 2


class SharedLeases:
    """The numbers of the leases that this process holds; all its sessions know them."""

    __slots__ = ("held", "lock")

    def __init__(self) -> None:
        self.held: set[int] = set()
        self.lock = threading.Lock()


class ServerLeases:
    """Leases as one session asks for them.

    The answer of the server is kept until the next view or batch: a lease that a record names was taken before the
    record was committed.
    """

    __slots__ = ("_class", "_held_by_all", "_own", "_session")

    def __init__(self, session: Session, lock_class: int, own: SharedLeases) -> None:
        self._session = session
        self._class = lock_class
        self._own = own
        self._held_by_all: set[int] | None = None

    def forget(self) -> None:
        """Ask the server again from now on: a view or batch begins."""
        self._held_by_all = None

    def hold(self, lease: int) -> bool:
        """Hold a lease as long as the session lives; False if the lease is taken."""
        if lease in self._own.held:
            return False
        (rows,) = self._session.run(((TRY_LEASE, (int4(self._class), int4(lease))),))
        if not as_bool(rows[0][0]):
            return False
        self._own.held.add(lease)
        return True

    def drop(self, lease: int) -> None:
        """Let go of a lease of this process. With a lost session the lease is gone, known or found out just now."""
        self._own.held.discard(lease)
        if self._session.failed is None:
            with suppress(ServerLost):
                self._session.run(((DROP_LEASE, (int4(self._class), int4(lease))),))

    def is_held(self, lease: int) -> bool:
        if lease in self._own.held:
            return True
        if self._held_by_all is None:
            (rows,) = self._session.run(((HELD_LEASES, (int8(self._class),)),))
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


class NoTimestamps:
    """On a server every transaction with a timestamp has a record, so no timestamp is held without one."""

    __slots__ = ()

    def hold(self, timestamp: int, deadline_ns: int) -> None:  # noqa: ARG002
        raise AssertionError("timestamps are issued with a record alone")

    def release(self, timestamp: int) -> None:  # noqa: ARG002
        return

    def lowest(self, up_to: int) -> int | None:  # noqa: ARG002
        return None


class ServerLocks:
    """The locks of a store as one session asks for them."""

    __slots__ = ("leases", "open_timestamps")

    def __init__(self, leases: ServerLeases) -> None:
        self.leases = leases
        self.open_timestamps = NoTimestamps()
