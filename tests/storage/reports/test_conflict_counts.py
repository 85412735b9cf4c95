"""Counted conflicts: `storage/reports/conflict_counts.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store
from storage.errors import LostConflict
from storage.reports.conflict_counts import count_conflicts


def test_conflicts_of_the_same_jobs_are_one_row(tmp_path: Path) -> None:
    """By table, with the losses, the different keys, and both jobs by labels and program; the most losses first."""
    path = tmp_path / "a.store"
    Store.create(path)
    with Store.open(path, program="move.py") as store:
        for name in ("accounts", "limits"):
            store.create_table(name)
        for table, key in (("accounts", b"a"), ("accounts", b"b"), ("accounts", b"a"), ("limits", b"a")):
            first = store.begin_transaction(labels={"job": "left"})
            second = store.begin_transaction(labels={"job": "right"}, priority="high")
            store.table(table).put(key, b"1", txn=second)
            with pytest.raises(LostConflict):
                store.table(table).put(key, b"2", txn=first)
            store.commit_transaction(second)
        with store.connection.view() as view:
            counts = count_conflicts(view)
        assert [(row.table, row.losses, row.keys) for row in counts] == [("accounts", 3, 2), ("limits", 1, 1)]
        assert {row.loser for row in counts} == {"job=left (move.py)"}
        assert {row.winner for row in counts} == {"job=right (move.py)"}
        assert counts[0].first_at_ms <= counts[0].last_at_ms
        assert store.reports.store_report().conflict_counts == counts
