"""Liveness: whether the process that took a lease is alive or dead, proven by the kernel.

A lease is a byte of the lock file, locked as long as its process lives: byte 2^20 + n for lease n. The kernel drops the
lock with the process, so a free byte proves death. A pid proves nothing, as the system reuses pids.
"""

from __future__ import annotations

import os
from typing import Final

from storage.process.byte_locks import ByteLocks
from storage.process.identity import ProcessIdentity, is_stopped

_FIRST_LEASE_BYTE: Final = 1 << 20


class ByteLeases:
    """The leases of one store: the ones this process holds, and whether any lease is held at all."""

    __slots__ = ("_held", "_locks")

    def __init__(self, locks: ByteLocks) -> None:
        self._locks = locks
        self._held: set[int] = set()

    def hold(self, lease: int) -> bool:
        """Lock the byte of a lease for as long as this process lives; False if the lease is taken.

        The kernel keeps processes apart. Handles of one process share a descriptor, so the set of held leases keeps
        handles apart.
        """
        if lease in self._held or not self._locks.take_exclusive(_FIRST_LEASE_BYTE + lease):
            return False
        self._held.add(lease)
        return True

    def drop(self, lease: int) -> None:
        """Unlock the byte of a lease of this process."""
        self._held.discard(lease)
        self._locks.release(_FIRST_LEASE_BYTE + lease)

    def is_held(self, lease: int) -> bool:
        """Whether a process, this one included, holds the lease: proof that the process lives."""
        return lease in self._held or self._locks.is_taken(_FIRST_LEASE_BYTE + lease)

    def state_of(self, lease: int, holder: ProcessIdentity, boot_id: bytes) -> str:
        """The proven state of the process that took a lease: alive, stopped, dead, rebooted or unknown-host."""
        if self.is_held(lease):
            return "stopped" if is_stopped(holder.pid, holder.started) else "alive"
        if holder.boot_id != boot_id:
            return "rebooted" if holder.host == os.uname().nodename else "unknown-host"
        return "dead"
