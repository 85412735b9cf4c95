"""Reap overdue and orphaned transactions on request."""

from __future__ import annotations

from functools import partial

from storage import audit_trail
from storage.admin.audited_change import Aborted
from storage.disk.reserve import ReserveShare
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.limits import REAP_STEP_MAX
from storage.reports import transactions
from storage.reports.transactions import TransactionRow
from storage.txn import reaper


def reap_transactions(engine: Engine, limit: int, dry_run: bool, reason: str | None) -> list[TransactionRow]:
    """End overdue and orphaned transactions in store transactions of bounded size, and return their rows."""
    audit_trail.check_reason(reason)
    process, rows = engine.process, list[TransactionRow]()

    def change(batch: WriteBatch, room: int) -> list[TransactionRow]:
        ended, names = engine.reaper.reap(batch, room), transactions.topic_names(batch)
        ended_rows = [transactions.row_of(batch, engine, end.record, names) for end in ended]
        if ended_rows:
            aborted = Aborted([row.txn_id for row in ended_rows])
            target = ", ".join([str(txn_id) for txn_id in aborted.transactions_aborted[:20]])
            audit_trail.record(batch, process, "transactions reap", target, reason, aborted)
        return ended_rows

    while len(rows) < limit:
        room = limit - len(rows) if dry_run else min(limit - len(rows), REAP_STEP_MAX)
        step = engine.connection.write(
            partial(change, room=room), dry_run=dry_run, naming=reaper.EVERY, share=ReserveShare.WHOLE
        )
        rows += step
        if dry_run or len(step) < room:
            break
    return rows
