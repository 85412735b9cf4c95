"""Advise on a transaction: one piece of advice, with the next action. Pure.

The first advice that fits is given: an ended transaction needs nothing; an orphan is reaped; a stopped process is
continued; a process at work is waited for; a transaction that would free nothing refers to the one before it; then
comes ending the transaction, beginning with a dry run; a transaction that holds nothing back is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.actions import Action, resume
from storage.limits import ACTIVE_OWNER_MS
from storage.table.push import RANKS
from storage.txn.options import Priority
from storage.txn.owner_state import GONE, LivingProcess
from storage.values.named_tuple import NamedTuple


class Situation(NamedTuple):
    """The facts about a transaction that advice follows from.

    Attributes:
        state: OPEN, COMMITTED or ABORTED.
        owner_state: alive, stopped, dead, rebooted, unknown-host or detached.
        last_user_state: alive, stopped, dead, rebooted, unknown-host or calling.
        living: the living process that goes on with the transaction, if any.
        overdue: whether the deadline has passed.
        reap_policy: of the store: all, overdue or manual.
        idle_ms: time since the last use.
        frees: committed messages that ending the transaction alone would free now.
        before: the transaction that comes first, if this one frees nothing yet.
        holds: whether the transaction holds back messages, pending acknowledgements or keys, itself or as the one
            before a transaction that does.
    """

    id: str
    state: str
    owner_state: str | None
    last_user_state: str | None
    living: LivingProcess | None
    overdue: bool
    reap_policy: str
    idle_ms: int
    frees: int
    before: str | None
    holds: bool


class Advice(NamedTuple):
    """A stable word for the advice, the reason, and the action.

    `safe_to_end` is true after the deadline or the death of the process, false while a process may go on with the
    transaction, None where neither is known.
    """

    advice: str
    safe_to_end: bool | None
    because: str
    action: Action | None


def judge(situation: Situation) -> Advice:
    """The advice for a situation."""
    txn = situation.id
    if situation.state != "OPEN":
        return Advice("nothing", None, "It has ended and holds nothing back.", None)
    if situation.owner_state in GONE or situation.overdue:
        return _reap(situation)
    living = situation.living
    if living is not None and living.state == "stopped":
        why = f"{_named(living)} is stopped: continue it (SIGCONT), or abort the transaction."
        return Advice("continue", False, why, resume(living.process.pid, living.process.host))
    if situation.idle_ms < ACTIVE_OWNER_MS and situation.owner_state != "unknown-host":
        used = "used within the last minute"
        if situation.last_user_state in GONE:
            used += " by a process that has ended, as a script's command does"
        why = f"It was {used}: somebody may be at work in it. Let it finish."
        return Advice("wait", False, why, Action("store.reports.wait_for_transaction", txn, timeout=60))
    if not situation.frees and situation.before is not None:
        first = situation.before
        why = f"Ending it frees nothing before {first} has ended, which comes first. Look at that one."
        return Advice("look-at-first", None, why, Action("store.reports.explain_transaction", first))
    if not situation.holds:
        return Advice("leave", None, "Nobody waits for it: leave it to its owner, or to its deadline.", None)
    return _end(situation)


def next_write(priority: str) -> str:
    """The outcome of the next write of a key that an open transaction of this priority holds."""
    if RANKS[priority] < RANKS[Priority.MEDIUM.value]:
        return "The next write of a key that it holds is refused, a plain one too, unless its priority is as high."
    return "The next write of a key that it holds aborts it, a plain one too, unless its priority is lower."


def next_writer(reap_policy: str, overdue: Sequence[bool]) -> str:
    """The outcome of the next write for late transactions, by the store's reap policy.

    Args:
        reap_policy: `all`, `overdue` or `manual`.
        overdue: of each late transaction whether its deadline has passed; otherwise its process is gone.
    """
    it = "it" if len(overdue) == 1 else "them"
    if reap_policy == "all" or (reap_policy == "overdue" and all(overdue)):
        return f"The next writer aborts {it}, and so does this."
    if reap_policy == "overdue" and any(overdue):
        return "The next writer aborts those past the deadline, by the store's reap policy; this aborts all."
    return f"The store's reap policy ({reap_policy}) has no writer abort {it} on its way: this does."


def _named(living: LivingProcess) -> str:
    place = living.process.place
    return (
        f"Its process {place}"
        if living.is_owner
        else f"Process {place} ({living.process.program}), its last user,"
    )


def _reap(situation: Situation) -> Advice:
    """Advise reaping: a commit that names the transaction would not reap it first."""
    state = (
        "Its deadline has passed: it can never commit any more."
        if situation.overdue
        else "Its process is gone; only who has its id could still commit it."
    )
    living = None if situation.overdue else situation.living
    if living is not None:
        state = f"The process that began it is gone. {_named(living)} is {living.state}."
    effect = next_writer(situation.reap_policy, [situation.overdue])
    return Advice(
        "reap", living is None, f"{state} {effect}", Action("store.admin.transactions.reap_transactions")
    )


def _end(situation: Situation) -> Advice:
    look = "look at what ending it changes"
    safe: bool | None = None
    if situation.living is not None:
        safe = False
        why = f"{_named(situation.living)} lives and does nothing with it: ask its owner, wait, or {look}."
    elif situation.owner_state == "unknown-host":
        why = f"It was begun on another machine; nothing here tells whether its owner lives: ask there, then {look}."
    elif situation.last_user_state == "unknown-host":
        why = f"It was last used on another machine; nothing here tells whether its user lives: ask there, then {look}."
    else:
        why = f"No process holds it and nobody uses it; whoever has its id may still come back: {look}."
    abort = Action("store.admin.transactions.abort_transaction", situation.id, dry_run=True)
    return Advice("end", safe, why, abort)
