"""Whether the owner of an open transaction lives, for reports."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.process.locks import Locks
from storage.txn.record import TransactionRecord

GONE = ("dead", "rebooted")
"""The states of an owner that is proven dead."""


def owner_state(view: ReadView, locks: Locks, record: TransactionRecord) -> str:
    """alive, stopped, dead, rebooted, unknown-host, or detached (no process is attached: only the deadline ends it)."""
    if not record.lease:
        return "detached"
    return locks.leases.state_of(record.lease, record.owner, view.clock.boot_id())
