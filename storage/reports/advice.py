"""What to do about a transaction: one piece of advice, with the command to type. Pure.

The first that fits is given: what has ended needs nothing; what its process has left is reaped; who is stopped is
continued; who is at work is waited for; what would free nothing leads to the one that would; then comes ending it,
which begins with a look at what that changes; and what holds nobody up is left alone.
"""

from __future__ import annotations

from typing import Any

from storage.limits import ACTIVE_OWNER_MS
from storage.table.push import RANKS
from storage.txn.liveness import GONE
from storage.txn.options import Priority


class Situation:
    """What is known of a transaction when advice is asked for.

    Attributes:
        id: its id.
        state: OPEN, COMMITTED or ABORTED.
        owner_state: alive, stopped, dead, rebooted, unknown-host or detached.
        pid: of its owner.
        overdue: whether its deadline has passed.
        reaped: whether the store's reap policy has the next writer end it, overdue or left behind as it is.
        idle_ms: since its last use.
        frees: committed messages that its end alone would free now.
        before: the transaction that comes first where this one frees nothing yet, or None.
        holds: whether it holds back anything: messages, pending acknowledgements, keys.
    """

    __slots__ = (
        "before",
        "frees",
        "holds",
        "id",
        "idle_ms",
        "overdue",
        "owner_state",
        "pid",
        "reaped",
        "state",
    )

    def __init__(
        self, id: str, state: str, owner_state: str | None, pid: int, overdue: bool, reaped: bool, idle_ms: int,
        frees: int, before: str | None, holds: bool,
    ) -> None:  # fmt: skip
        self.id = id
        self.state = state
        self.owner_state = owner_state
        self.pid = pid
        self.overdue = overdue
        self.reaped = reaped
        self.idle_ms = idle_ms
        self.frees = frees
        self.before = before
        self.holds = holds


def judge(found: Situation) -> dict[str, Any]:
    """The advice: a stable word for it, whether ending the transaction now is safe, why, and the command.

    `safe` is true where its deadline has passed or its process is gone, false where somebody is there to go on with
    it, null where that cannot be told.
    """
    advice, safe, why, command = _judge(found)
    return {"advice": advice, "safeToEnd": safe, "because": why, "command": command}


def next_write(priority: str) -> str:
    """What the next write of a key comes to that an open transaction of this priority holds; a plain one is medium."""
    if RANKS[priority] < RANKS[Priority.MEDIUM.value]:
        return "The next write of a key that it holds is refused, a plain one too, unless its priority is as high."
    return "The next write of a key that it holds aborts it, a plain one too, unless its priority is lower."


def _judge(found: Situation) -> tuple[str, bool | None, str, str | None]:
    if found.state != "OPEN":
        return "nothing", None, "It has ended and holds nothing back.", None
    if found.owner_state in GONE or found.overdue:
        return _reap(found)
    if found.owner_state == "stopped":
        why = f"Its process {found.pid} is stopped; continued, it goes on where it was. Or end that process."
        return "continue", False, why, f"kill -CONT {found.pid}"
    if found.idle_ms < ACTIVE_OWNER_MS and found.owner_state != "unknown-host":
        why = "It was used within the last minute: somebody is at work in it. Let it finish."
        return "wait", False, why, f"txnctl transactions wait {found.id} --timeout 1m"
    if not found.frees and found.before is not None:
        why = f"Ending it frees nothing before {found.before} has ended, which comes first. Look at that one."
        return "look-at-first", None, why, f"txnctl transactions explain {found.before}"
    if not found.holds:
        return "leave", None, "Nobody waits for it: leave it to its owner, or to its deadline.", None
    return _end(found)


def _reap(found: Situation) -> tuple[str, bool | None, str, str | None]:
    """Who commits by its id is not a next writer: no command ends on its way the transaction that it names."""
    state = (
        "Its deadline has passed: it can never commit any more."
        if found.overdue
        else "Its process is gone; only who has its id could still commit it."
    )
    who = (
        "The next writer aborts it, all of it; so does this."
        if found.reaped
        else "The store's reap policy has no writer abort it on its way: this does."
    )
    return "reap", True, f"{state} {who}", "txnctl transactions reap"


def _end(found: Situation) -> tuple[str, bool | None, str, str | None]:
    look = "look at what ending it changes"
    safe: bool | None = None
    if found.owner_state == "alive":
        safe = False
        why = (
            f"Its process {found.pid} lives and does nothing with it: find out what it waits for, or {look}."
        )
    elif found.owner_state == "unknown-host":
        why = f"It was begun on another machine; nothing here tells whether its owner lives: ask there, then {look}."
    else:
        why = f"No process holds it and nobody uses it; whoever has its id may still come back: {look}."
    return "end", safe, why, f"txnctl transactions abort {found.id} --dry-run"
