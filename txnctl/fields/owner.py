"""The owner of a transaction in words: alive or dead, with the evidence; its deadline; its isolation."""

from __future__ import annotations

from typing import Protocol

from txnctl.output.human import UNKNOWN, duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from storage.process.identity import ProcessIdentity
    from storage.reports.explain import Explanation
    from storage.reports.transactions import TransactionRow
    from storage.txn.owner_state import Used

_USUAL_PRIORITY = "medium"

EVIDENCE = {
    "alive": "yes: its process holds the kernel lock that proves it",
    "stopped": "stopped (SIGSTOP, a debugger); that counts as alive, its process holds its kernel lock",
    "dead": "ORPHANED: its process is dead, the kernel has released its lock",
    "rebooted": "ORPHANED: the machine was rebooted since, so its process is gone",
    "unknown-host": "unknown: it began on another machine, and nobody here holds its lock",
    "detached": "detached: its deadline alone rules",
}
"""What proves that its owner lives, or that it cannot, by its state."""


class Owned(Protocol):
    """A row of a transaction with the process that began the transaction; states are None after the end."""

    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def owner(self) -> ProcessIdentity: ...
    @property
    def owner_state(self) -> str | None: ...
    @property
    def last_user(self) -> ProcessIdentity: ...
    @property
    def last_user_state(self) -> str | None: ...
    @property
    def orphaned(self) -> bool | None: ...
    @property
    def overdue(self) -> bool | None: ...
    @property
    def deadline_in_ms(self) -> int | None: ...


def alive(row: Owned) -> str:
    """One word about the owning process."""
    if row.orphaned:
        return "ORPHANED"
    from storage.txn.owner_state import living_process

    living = living_process(row)
    state = (row.owner_state if living is None else living.state) or UNKNOWN
    return {"alive": "yes", "unknown-host": "unknown"}.get(state, state)


def evidence(row: Owned) -> str:
    """The proof that the owner is alive or dead, and the last user where that is a different process."""
    state = row.owner_state or UNKNOWN
    proof = EVIDENCE.get(state, state)
    if row.last_user == row.owner and state != "detached":
        return proof
    return f"{proof}; last used by {last_user(row)}"


def last_user(row: Used) -> str:
    """`process 48211 (loader), which is stopped`."""
    user, state = row.last_user, row.last_user_state
    words = {
        "calling": "this process",
        "unknown-host": f"on {user.host}",
        "rebooted": "gone: the machine was rebooted",
    }
    return f"process {user.pid} ({user.program}), {words.get(state or '', f'which is {state or UNKNOWN}')}"


def deadline(row: Owned) -> str:
    """`in 12m48s`, or `OVERDUE 3s`."""
    left_ms = row.deadline_in_ms
    if row.overdue and left_ms is not None:
        return f"OVERDUE {duration(-left_ms)}"
    return f"in {duration(left_ms)}"


def mode(row: TransactionRow) -> str:
    """The isolation, and the priority where not medium: `SERIALIZABLE, high`."""
    return row.isolation if row.priority == _USUAL_PRIORITY else f"{row.isolation}, {row.priority}"


def beside_the_lock(row: Explanation) -> Iterator[str]:
    """The process table contradicts the lock: a line that explains, where this might mislead."""
    process_table, transaction = row.evidence, row.details.row
    pid = transaction.owner.pid
    if process_table is None:
        return
    if process_table.pid_reused:
        yield ""
        yield f"A process {pid} runs now, but it was started later: it is another one."
    elif process_table.process_running and transaction.orphaned:
        yield ""
        yield f"Process {pid} runs, but it has let go of the store: it cannot go on with this transaction."
