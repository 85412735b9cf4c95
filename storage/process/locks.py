"""The locks of a store that rooms above the disk may ask: leases, and timestamps of transactions without a record.

`lock_file.py` has them as bytes of a file, a server as locks of its sessions.
"""

from __future__ import annotations

from typing import Protocol

from storage.process.identity import ProcessIdentity


class Leases(Protocol):
    """The leases of processes: a held lease proves that its process lives."""

    def hold(self, lease: int) -> bool:
        """Hold a lease for as long as this process lives; False if the lease is taken."""

    def drop(self, lease: int) -> None:
        """Let go of a lease of this process."""

    def is_held(self, lease: int) -> bool:
        """Whether a process, this one included, holds the lease."""

    def state_of(self, lease: int, holder: ProcessIdentity, boot_id: bytes) -> str:
        """The proven state of the process that took a lease: alive, stopped, dead, rebooted or unknown-host."""


class OpenTimestamps(Protocol):
    """The timestamps of transactions that are open in a process and have no record."""

    def hold(self, timestamp: int, deadline_ns: int) -> None:
        """Hold a timestamp that is about to be issued, inside the writer gate.

        Args:
            deadline_ns: of the transaction, on the boot clock.
        """

    def release(self, timestamp: int) -> None:
        """Let go of a timestamp of this process, if it is held; any thread may call."""

    def lowest(self, up_to: int) -> int | None:
        """The lowest timestamp up to a bound that a process holds, this one included; None if there is none."""


class Locks(Protocol):
    """See the module."""

    @property
    def leases(self) -> Leases: ...

    @property
    def open_timestamps(self) -> OpenTimestamps: ...

    def begins_round(self, subscription_id: int, now_ns: int) -> bool:
        """Whether to look at all consumers of a subscription now; False where a process here has just begun to.

        Args:
            now_ns: boot time.
        """
