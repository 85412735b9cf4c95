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
from storage.txn import reaper, record as records
from storage.values.arguments import check_count


def reap_transactions(engine: Engine, limit: int, dry_run: bool, reason: str | None) -> list[TransactionRow]:
    """End overdue and orphaned transactions in store transactions of bounded size, and return their rows.

    The rows of a dry run are those of the open transactions, each with the reason of the abort that would follow.
    """
    audit_trail.check_reason(reason)
    check_count("a number of transactions", limit)
    process, rows = engine.process, list[TransactionRow]()

    def change(batch: WriteBatch, room: int) -> list[TransactionRow]:
        due = {*reaper.overdue(batch), *reaper.orphaned(batch, engine.locks)} if dry_run else set[int]()
        names = transactions.topic_names(batch) if due else {}
        open_rows = {txn: transactions.row_of(batch, engine, records.get(batch, txn), names) for txn in due}
        ended = engine.reaper.reap(batch, room, reason)
        if dry_run:
            return [open_rows[end.record.txn_id]._replace(reason=end.record.reason_code) for end in ended]
        names = transactions.topic_names(batch) if ended else {}
        ended_rows = [transactions.row_of(batch, engine, end.record, names) for end in ended]
        if ended_rows:
            aborted = Aborted([row.txn_id for row in ended_rows])
            target = ", ".join([str(txn_id) for txn_id in aborted.transactions_aborted[:20]])
            audit_trail.record(batch, process, "transactions reap", target, reason, aborted)
        return ended_rows

    while len(rows) < limit:
        room = limit if dry_run else min(limit - len(rows), REAP_STEP_MAX)
        if dry_run:
            return engine.connection.rehearse(partial(change, room=room), reaper.EVERY)
        step = engine.connection.write(
            partial(change, room=room), naming=reaper.EVERY, share=ReserveShare.WHOLE
        )
        rows += step
        if len(step) < room:
            break
    return rows
