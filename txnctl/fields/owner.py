"""The owner of a transaction in words: alive or dead, with the evidence; its deadline; its isolation."""

from __future__ import annotations

from txnctl.output.human import duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.output.row import Row

_USUAL_PRIORITY = "medium"

EVIDENCE = {
    "alive": "yes: its process holds the kernel lock that proves it",
    "stopped": "stopped (SIGSTOP, a debugger); that counts as alive, its process holds its kernel lock",
    "dead": "ORPHANED: its process is dead, the kernel has released its lock; the next writer aborts it",
    "rebooted": "ORPHANED: the machine was rebooted since; the next writer aborts it",
    "unknown-host": "unknown: it began on another machine, and nobody here holds its lock",
    "detached": "detached: no process holds it, its deadline alone rules",
}
"""What proves that its owner lives, or that it cannot, by its state."""


def alive(row: Row) -> str:
    """One word about the owning process."""
    if row["orphaned"]:
        return "ORPHANED"
    state = str(row["ownerState"])
    return {"alive": "yes", "unknown-host": "unknown"}.get(state, state)


def deadline(row: Row) -> str:
    """`in 12m48s`, or `OVERDUE 3s`."""
    if row["overdue"]:
        return f"OVERDUE {duration(-row['deadlineInMs'])}"
    return f"in {duration(row['deadlineInMs'])}"


def mode(row: Row) -> str:
    """The isolation, and the priority where not medium: `SERIALIZABLE, high`."""
    isolation, priority = str(row["isolation"]), str(row["priority"])
    return isolation if priority == _USUAL_PRIORITY else f"{isolation}, {priority}"


def beside_the_lock(row: Row) -> Iterator[str]:
    """The process table contradicts the lock: a line that explains, where this might mislead."""
    evidence, pid = row["evidence"], row["ownerDetails"]["pid"]
    if evidence is None:
        return
    if evidence["pidReused"]:
        yield ""
        yield f"A process {pid} runs now, but it was started later: it is another one."
    elif evidence["processRunning"] and row["orphaned"]:
        yield ""
        yield f"Process {pid} runs, but it has let go of the store: it cannot go on with this transaction."
