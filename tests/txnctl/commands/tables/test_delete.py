"""`txnctl tables delete`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from txnctl.commands.tables import delete
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestTables:
    """`create`, `list`, `show`, `stats`, `delete`."""

    def test_deleting_shows_its_plan_and_asks(self, run: Any, path: Path) -> None:
        """Without --yes and a terminal: exit 9, the plan on stderr, nothing done; with it, as the dry run said."""
        before = (path / "data.mdb").read_bytes()
        dry = run("tables", "delete", "accounts", "--dry-run", "-o", "json").json
        refused = run("tables", "delete", "accounts")
        assert (refused.status, refused.out) == (9, "")
        assert "removes   table accounts: 3 rows" in refused.err
        assert (path / "data.mdb").read_bytes() == before
        done = run("tables", "delete", "accounts", "--yes", "--reason", "moved", "-o", "json").json
        assert not undeclared(done, delete.DELETED)
        assert dry == {**done, "dryRun": True}
        assert run("tables", "list", "-o", "json").json == []
        (change,) = run("audit", "list", "-n", "1", "-o", "json").json
        assert (change["action"], change["target"], change["reason"]) == (
            "tables delete",
            "accounts",
            "moved",
        )

    def test_a_table_that_is_written_to_is_kept(self, run: Any) -> None:
        """While a transaction holds keys of it; --force aborts that first."""
        run("transactions", "begin")
        run("tables", "put", "accounts", "B1", "1", "--txn", "0:4")
        assert run("tables", "delete", "accounts", "--yes").status == 4
        forced = run("tables", "delete", "accounts", "--yes", "--force", "-o", "json").json
        assert forced["transactionsAborted"] == ["0:4"]
        assert run("transactions", "commit", "0:4").status == 4
