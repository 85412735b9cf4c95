"""States of a transaction and the transitions between states. Pure.

OPEN ──► COMMITTED        OPEN ──► ABORTED        nothing else, ever (invariant 16)
"""

from __future__ import annotations

from enum import Enum


class TransactionState(Enum):
    """The state of a transaction."""

    OPEN = "OPEN"
    COMMITTED = "COMMITTED"
    ABORTED = "ABORTED"


class AbortReason(Enum):
    """The reason of an abort."""

    ASKED = "asked"
    TIMED_OUT = "timed-out"
    OWNER_DEAD = "owner-dead"
    LOST_CONFLICT = "lost-conflict"
    REFUSED_WRITE = "refused-write"
    FENCED = "fenced"
    INCARNATION = "incarnation"
    RETENTION = "retention"


STATE_CODES = (TransactionState.OPEN, TransactionState.COMMITTED, TransactionState.ABORTED)
"""States by their number on disk."""


class Verdict(Enum):
    """The answer to a request to end a transaction."""

    PROCEED = "proceed"
    ALREADY_SO = "already so"
    CONFLICT = "conflict"
    TOO_LATE = "too late"


def judge_end(state: TransactionState, asked: TransactionState, now_ns: int, deadline_ns: int) -> Verdict:
    """Decide whether a transaction may be ended as asked; called once, inside the writer gate.

    Repeating a commit succeeds however late; after the deadline an open transaction can only be aborted.
    """
    if state is asked:
        return Verdict.ALREADY_SO
    if state is not TransactionState.OPEN:
        return Verdict.CONFLICT
    if asked is TransactionState.COMMITTED and now_ns >= deadline_ns:
        return Verdict.TOO_LATE
    return Verdict.PROCEED
