"""Whether the owner and the last user of an open transaction live, for reports and the guard of an abort.

A kernel lock proves the life of the owner of an attached transaction. Use by the id of a transaction takes no lock: pid
and start time in the process table show whether the last user runs.
"""

from __future__ import annotations

from typing import Protocol

from storage.disk.view import ReadView
from storage.process.identity import ProcessIdentity, is_calling, table_state
from storage.process.locks import Locks
from storage.txn.record import TransactionRecord
from storage.values.named_tuple import NamedTuple

GONE = ("dead", "rebooted")
"""The states of an owner that is proven dead."""

LIVING = ("alive", "stopped")
"""The states of a process that may go on with a transaction; a stopped one after SIGCONT."""


class LivingProcess(NamedTuple):
    """A living process that uses a transaction.

    Attributes:
        state: alive or stopped.
        is_owner: whether the process began the transaction.
    """

    process: ProcessIdentity
    state: str
    is_owner: bool


class Used(Protocol):
    """A row of a transaction with its owner and its last user; states are None after the end."""

    @property
    def owner(self) -> ProcessIdentity: ...
    @property
    def owner_state(self) -> str | None: ...
    @property
    def last_user(self) -> ProcessIdentity: ...
    @property
    def last_user_state(self) -> str | None: ...


def owner_state(view: ReadView, locks: Locks, record: TransactionRecord) -> str:
    """alive, stopped, dead, rebooted, unknown-host, or detached (no process is attached: only the deadline ends it)."""
    if not record.lease:
        return "detached"
    return locks.leases.state_of(record.lease, record.owner, view.clock.boot_id())


def user_state(view: ReadView, locks: Locks, record: TransactionRecord) -> str:
    """The state of the last user: as of an owner, or `calling`; the calling process is in no abort's way."""
    user = record.user
    if record.lease and not record.user_fields:
        return owner_state(view, locks, record)
    return "calling" if is_calling(user) else table_state(user, view.clock.boot_id())


def users_of(
    view: ReadView, locks: Locks, record: TransactionRecord
) -> tuple[ProcessIdentity, str, ProcessIdentity, str]:
    """The four fields of a row of an open transaction about its processes: owner, last user, each with the state."""
    return record.owner, owner_state(view, locks, record), record.user, user_state(view, locks, record)


def living_process(row: Used) -> LivingProcess | None:
    """The process that goes on with a transaction: the last user, or else the attached owner; None if neither lives."""
    if row.last_user_state in LIVING:
        return LivingProcess(row.last_user, row.last_user_state, row.last_user == row.owner)
    if row.owner_state in LIVING and row.last_user_state != "calling":
        return LivingProcess(row.owner, row.owner_state, True)
    return None
