"""Errors for a transaction that cannot be used or ended: the reason, the process that ended it, and a hint."""

from __future__ import annotations

from storage.actions import Action, Hint, Keyword, resume
from storage.disk.view import ReadView
from storage.errors import (
    LostConflict,
    OwnerAlive,
    ReadOnlyTransaction,
    TransactionChanged,
    TransactionNotOpen,
    TransactionTimedOut,
)
from storage.limits import ACTIVE_OWNER_MS
from storage.txn.owner_state import LivingProcess
from storage.txn.record import TransactionRecord
from storage.values.key_text import key_text
from storage.values.txn_id import TxnID
from storage.values.txn_state import AbortReason

RUN_AGAIN = Hint(
    "`{}` runs all of it again in a new transaction, after a wait and with a rising priority.",
    Action("store.run_transaction", "COMMAND"),
)
"""The hint of a lost conflict. Without the wait two losers lose to each other for ever (docs/decisions/0034)."""


def read_only(name: str) -> ReadOnlyTransaction:
    """The error for a write, a message or an acknowledgement in a read-committed transaction."""
    return ReadOnlyTransaction(
        f"transaction {name} is read-committed: it only reads tables",
        hint="Begin a serializable one: a read-committed one that writes would cost the same and promise less.",
        transaction=name,
    )


def not_open(record: TransactionRecord, asked: str) -> TransactionNotOpen:
    """The error for a use that only an open transaction allows; after a lost conflict the error names the winner."""
    if record.reason_code == AbortReason.LOST_CONFLICT.value and record.conflict:
        return _lost(record, asked)
    when = _ago(record.ended_ms)
    why = f", reason: {record.reason_code}" if record.reason_code else ""
    text = f" ({record.reason_text})" if record.reason_text else ""
    return TransactionNotOpen(
        f"transaction {record.id} cannot be {asked}: it was {record.state.value.lower()} {when} "
        f"by {record.ended_by}{why}{text}",
        hint=Hint("Begin a new one: `{}`.", Action("store.begin_transaction")),
        transaction=str(record.id),
        state=record.state.value,
        reason=record.reason_code,
    )


def too_late_to_fence(record: TransactionRecord) -> TransactionNotOpen:
    """The error for fencing the producers of a transaction aborted without: the store has forgotten the producers."""
    outcome = "its producers were not fenced"
    if record.reason_code == AbortReason.FENCED.value:
        outcome = "because a producer was fenced, further producers were not"
    return TransactionNotOpen(
        f"transaction {record.id} was aborted {_ago(record.ended_ms)} by {record.ended_by}; {outcome}",
        hint=Hint(
            "`{}` takes a topic from those that produce there.",
            Action("store.admin.producers.fence_producers", "TOPIC"),
        ),
        transaction=str(record.id),
        state=record.state.value,
        reason=record.reason_code,
    )


def _lost(record: TransactionRecord, asked: str) -> LostConflict:
    assert record.conflict is not None, "the caller has seen it"
    _, winner, version, table, key = record.conflict
    who = f"transaction {TxnID(winner)}" if winner else f"the transaction of timestamp {version}"
    shown = key_text(key)
    return LostConflict(
        f"transaction {record.id} cannot be {asked}: it lost key {shown} of table {table} to {who} "
        f"and was aborted {_ago(record.ended_ms)}",
        hint=RUN_AGAIN,
        transaction=str(record.id),
        state=record.state.value,
        reason=record.reason_code,
        winner=str(TxnID(winner)) if winner else None,
        winnerVersion=str(version),
        table=table,
        key=shown,
    )


def timed_out(record: TransactionRecord) -> TransactionTimedOut:
    """The error for a use after the deadline; the use itself has aborted the transaction."""
    return TransactionTimedOut(
        f"the deadline of transaction {record.id} ({record.timeout_ms / 1000:g} s) has passed: it is aborted",
        hint=Hint("Begin a new one, with a longer {} if the work needs it.", Keyword("timeout")),
        transaction=str(record.id),
        state="ABORTED",
        reason=AbortReason.TIMED_OUT.value,
    )


def changed(record: TransactionRecord, seen: int) -> TransactionChanged:
    """The error for ending a transaction whose record is newer than the version given by the operator."""
    return TransactionChanged(
        f"transaction {record.id} is at version {record.version}, not {seen}: it was used meanwhile",
        hint=Hint("Look again: `{}`.", Action("store.reports.show_transaction", record.id)),
        transaction=str(record.id),
        version=record.version,
    )


def owner_at_work(view: ReadView, record: TransactionRecord, living: LivingProcess) -> OwnerAlive | None:
    """The error for aborting a transaction of a living process, used within the last minute; None if that is allowed.

    Args:
        living: the process; a stopped one continues only after SIGCONT.
    """
    idle_ms, process, state = record.idle_ms(view.now_ns), living.process, living.state
    if idle_ms >= ACTIVE_OWNER_MS:
        return None
    way = "Let it finish"
    if state == "stopped":
        way = Hint("Continue it with {}", resume(process.pid, process.host))
    return OwnerAlive(
        f"the {'owner' if living.is_owner else 'last user'} of transaction {record.id}, {process}, is {state} and used "
        f"it {idle_ms / 1000:.0f} s ago",
        hint=Hint(
            "{}, or abort it all the same with {}; {} shows what that changes.",
            way,
            Keyword("force", True),
            Keyword("dry_run", True),
        ),
        transaction=str(record.id),
        ownerState=state,
        idleMs=idle_ms,
    )


def _ago(wall_ms: int | None) -> str:
    from time import gmtime, strftime

    return "" if wall_ms is None else "at " + strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(wall_ms / 1000))
