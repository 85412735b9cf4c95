"""`txnctl store restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from txnctl.commands.store import restore
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestBackup:
    """`store backup`, `restore`."""

    def test_a_restored_store_is_another_incarnation(self, run: Any, path: Path, tmp_path: Path) -> None:
        """What was open is aborted; the epoch of each topic grows."""
        with Store.open(path) as store:
            txn = store.begin_transaction()
            store.create_producer("orders").send(b"open", txn=txn)
        backup, back = tmp_path / "backup", tmp_path / "back"
        assert run("store", "backup", str(backup)).status == 0
        dry = run("store", "restore", str(backup), "--to", str(back), "--dry-run", "-o", "json").json
        assert not back.exists()
        row = run("store", "restore", str(backup), "--to", str(back), "--reason", "test", "-o", "json").json
        assert (dry.pop("dryRun"), row.pop("dryRun")) == (True, False)
        assert dry == row
        assert not undeclared(row, restore.RESTORED)
        assert (row["path"], row["incarnation"], row["transactionsAborted"]) == (str(back), 2, 1)
        with Store.open(back) as store:
            assert store.maintenance.verify_store() == []
            assert row_json(store.reports.show_transaction(txn))["reason"] == "incarnation"
            assert row_json(store.reports.list_audit_records())[0]["reason"] == "test"
            assert len(list(store.reader("orders"))) == 10
        with Store.open(path) as store:
            assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"

    def test_a_missing_or_foreign_source_is_refused(self, run: Any, tmp_path: Path) -> None:
        """Exit 6, and nothing is created."""
        (tmp_path / "photos").mkdir(mode=0o700)
        for name in ("nowhere", "photos"):
            outcome = run("store", "restore", str(tmp_path / name), "--to", str(tmp_path / "new"))
            assert outcome.status == 6
            assert "store init" not in outcome.err
            assert "--store" not in outcome.err
        assert sorted(each.name for each in tmp_path.iterdir()) == ["bank.store", "photos"]
