"""Recorded conflicts over tables, counted by table, kind and the jobs of loser and winner."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.table import conflict
from storage.txn import record as records
from storage.values.named_tuple import NamedTuple
from storage.values.txn_id import TxnID


class ConflictCount(NamedTuple):
    """Conflicts of one kind over one table, between the transactions of two jobs.

    Attributes:
        table: None for conflicts over no key.
        loser, winner: labels and program, or the program alone; None for transactions without a record.
        losses: transactions that lost.
        keys: different keys among these conflicts.
    """

    table: str | None
    kind: str
    loser: str | None
    winner: str | None
    losses: int
    keys: int
    first_at_ms: int
    last_at_ms: int


def count_conflicts(view: ReadView) -> list[ConflictCount]:
    """Count the recorded conflicts, of which there are at most `CONFLICTS_MAX`; the most losses first."""
    jobs: dict[TxnID, str | None] = {}

    def job_of(txn: TxnID | None) -> str | None:
        if txn is None:
            return None
        if txn not in jobs:
            jobs[txn] = _job(view, txn)
        return jobs[txn]

    groups: dict[tuple[str | None, str, str | None, str | None], list[conflict.ConflictRow]] = {}
    for row in conflict.list_conflicts(view):
        group = (row.table, row.kind, job_of(row.loser), job_of(row.winner))
        groups.setdefault(group, []).append(row)
    counts = [
        ConflictCount(
            *group, len(rows), len({row.key for row in rows} - {None}),
            rows[-1].happened_at_ms, rows[0].happened_at_ms,
        )
        for group, rows in groups.items()
    ]  # fmt: skip
    return sorted(counts, key=lambda row: (-row.losses, -row.last_at_ms))


def _job(view: ReadView, txn: TxnID) -> str | None:
    record = records.find(view, txn.least)
    if record is None:
        return None
    labels = " ".join([f"{name}={value}" for name, value in record.labels.items()])
    return f"{labels} ({record.owner.program})" if labels else record.owner.program
