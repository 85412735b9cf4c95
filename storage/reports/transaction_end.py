"""The end of one transaction, for the supervisor of a command: cheap enough for a look every second."""

from __future__ import annotations

from storage import audit_trail
from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.process.identity import ProcessIdentity
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.values.named_tuple import NamedTuple
from storage.values.txn_state import AbortReason, TransactionState

_BATCH_MS_MAX = 10_000
"""A fence and the audit record are of one batch, and so at most this far apart."""


class TransactionEnd(NamedTuple):
    """How a transaction ended.

    Attributes:
        reason: asked, timed-out, lost-conflict and so on; None for a commit.
        reason_text: an operator's words, or further detail.
        by_operator: whether an abort, a fence or a change by force ended the transaction, and not the owner's command.
    """

    state: TransactionState
    ended_by: ProcessIdentity | None
    reason: str | None
    reason_text: str | None
    by_operator: bool

    def __str__(self) -> str:
        why = f", {self.reason}" if self.reason else ""
        text = f": {self.reason_text}" if self.reason_text else ""
        return f"{self.state.value.lower()} by {self.ended_by}{why}{text}"


def end_of(connection: Connection, txn: int) -> TransactionEnd | None:
    """The end of a transaction; None while the transaction is open.

    Raises:
        TransactionNotFound
    """
    with connection.view() as view:
        record = records.get(view, txn)
        if record.state is TransactionState.OPEN:
            return None
        is_operators = record.state is TransactionState.ABORTED and _is_operators(view, record)
        return TransactionEnd(
            record.state, record.ended_by, record.reason_code, record.reason_text, is_operators
        )


def _is_operators(view: ReadView, record: TransactionRecord) -> bool:
    process, ended_ms = record.ended_by, record.ended_ms
    if process is None or ended_ms is None or process == record.owner:
        return False
    changes = audit_trail.changes_by(view, process)
    if record.reason is AbortReason.ASKED:
        # A change by force may take several store transactions, and the audit record is part of the last.
        target = str(record.id)
        return not any(one.target == target and one.effects.get("byOwnCommand") for one in changes)
    # A take-over by a producer leaves no audit record. A batch reads the clock for each of its records.
    is_fenced = record.reason is AbortReason.FENCED
    return is_fenced and any(0 <= one.changed_at_ms - ended_ms <= _BATCH_MS_MAX for one in changes)
