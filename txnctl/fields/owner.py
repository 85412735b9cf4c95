"""The owner of a transaction in words: alive or dead, with the evidence; its deadline; its isolation."""

from __future__ import annotations

from storage.actions import is_elsewhere
from txnctl.output.field import Help
from txnctl.output.human import UNKNOWN, duration, labels_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.abort import NextBlocker
    from storage.reports.explain import Explanation
    from storage.reports.timeline import Holder
    from storage.reports.transactions import TransactionRow
    from storage.txn.owner_state import Used

    Row = Holder | TransactionRow | NextBlocker
    """A row of a transaction with its labels."""

_USUAL_PRIORITY = "medium"

EVIDENCE = {
    "alive": "yes: its process holds the lock that proves it",
    "stopped": "stopped (SIGSTOP, a debugger); that counts as alive, its process holds its lock",
    "dead": "ORPHANED: its process is dead, its lock is released",
    "rebooted": "ORPHANED: the machine was rebooted since, so its process is gone",
    "unknown-host": "unknown: it began on another machine, and nobody here holds its lock",
    "detached": "detached: its deadline alone rules",
}
"""What proves that its owner lives, or that it cannot, by its state."""


LAST_USER_HELP = {
    "last_user": Help("Who used it last: user@host:pid (program)."),
    "last_user_state": Help("alive, stopped, dead, rebooted, unknown-host; calling: this very process."),
}
"""The two fields of every row that names the owner of an open transaction, beside those of the owner."""


def process_state(row: Used) -> str:
    """The state of the process that goes on with the transaction; of the owner, where none is known to live."""
    from storage.txn.owner_state import GONE, living_process

    living = None if row.owner_state in GONE else living_process(row)
    return (row.owner_state if living is None else living.state) or UNKNOWN


def alive(row: Used) -> str:
    """One word about the process that goes on with the transaction."""
    words = {"alive": "yes", "unknown-host": "unknown", "dead": "ORPHANED", "rebooted": "ORPHANED"}
    known = process_state(row)
    return words.get(known, known)


def evidence(row: Used) -> str:
    """The proof that the owner is alive or dead, and the last user where that is a different process."""
    known = row.owner_state or UNKNOWN
    proof = EVIDENCE.get(known, known)
    if known == "alive" and is_elsewhere(row.owner.host):
        host = row.owner.host
        proof = f"yes: on {host}, it holds the lock that proves it; only {host} tells whether it is stopped"
    if row.last_user == row.owner and known != "detached":
        return proof
    return f"{proof}; last used by {last_user(row)}"


def told(row: Used) -> str:
    """`owner anna@db-2:48211 (loader) is alive`, with the last user where the owner says nothing of the use."""
    if row.owner_state == "detached":
        return f"detached, begun by {row.owner}, last used by {last_user(row)}"
    owner = f"owner {row.owner} is {row.owner_state}"
    return owner if row.last_user == row.owner else f"{owner}, last used by {last_user(row)}"


def last_user(row: Used) -> str:
    """`process 48211 (loader), which is stopped`."""
    user, known = row.last_user, row.last_user_state
    words = {
        "calling": "this process",
        "unknown-host": f"on {user.host}",
        "rebooted": "gone: the machine was rebooted",
    }
    return f"process {user.pid} ({user.program}), {words.get(known or '', f'which is {known or UNKNOWN}')}"


def other_user(row: Used) -> str | None:
    """The address of the last user, where a different process began the transaction."""
    return None if row.last_user == row.owner else row.last_user.address


def users(row: Used) -> str:
    """`anna@db-2:48211`, or `anna@db-2:48211, last used by anna@db-2:48300`."""
    return _with_user(row.owner.address, row)


def about(row: Row) -> str:
    """Labels, or the owner where there are none; with the last user where that is a different process."""
    return _with_user(labels_text(row.labels) or row.owner.address, row)


def who(row: Row) -> str:
    """`job=loader, anna@db-2:48211`: labels, owner and a last user that is a different process."""
    return f"{labels_text(row.labels)}, {users(row)}" if row.labels else users(row)


def _with_user(text: str, row: Used) -> str:
    """In a line with much else a user that is gone says nothing of what goes on."""
    from storage.txn.owner_state import GONE

    user = other_user(row)
    return text if user is None or row.last_user_state in GONE else f"{text}, last used by {user}"


def deadline(row: Holder | TransactionRow) -> str:
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
