"""Reap overdue and orphaned transactions on request."""

from __future__ import annotations

from functools import partial
from typing import Any

from storage import audit_trail
from storage.disk.view import WriteBatch
from storage.engine import Engine
from storage.limits import REAP_STEP_MAX
from storage.reports import transactions
from storage.txn import reaper
from storage.txn.coordinator import Ended


def reap_transactions(engine: Engine, limit: int, dry_run: bool, reason: str | None) -> list[dict[str, Any]]:
    """End overdue and orphaned transactions, in store transactions of a bounded size; the rows of those that were."""
    audit_trail.check_reason(reason)
    by, rows = engine.connection.owner, list[dict[str, Any]]()

    def change(batch: WriteBatch, room: int) -> list[dict[str, Any]]:
        ended: list[Ended] = engine.reaper.reap(batch, room)
        names = transactions.topic_names(batch)
        ended_rows = [transactions.row(batch, engine, each.record, names) for each in ended]
        if ended_rows:
            ids = [each["txnId"] for each in ended_rows]
            audit_trail.record(
                batch, by, "transactions reap", ", ".join(ids[:20]), reason, {"transactionsAborted": ids}
            )
        return ended_rows

    while len(rows) < limit:
        room = limit - len(rows) if dry_run else min(limit - len(rows), REAP_STEP_MAX)
        step = engine.connection.write(partial(change, room=room), dry_run=dry_run, naming=reaper.EVERY)
        rows += step
        if dry_run or len(step) < room:
            break
    return rows
