"""`txnctl tables list`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.commands.tables.list import LISTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestTables:
    """`create`, `list`, `show`, `stats`, `delete`."""

    def test_nothing_is_success(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """An empty array, or a note that says how to begin."""
        Store.create(tmp_path / "empty")
        monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "empty"))
        assert run("tables", "list", "-o", "json").json == []
        outcome = run("tables", "list")
        assert (outcome.status, outcome.out) == (0, "")
        assert "tables create" in outcome.err

    def test_list_show_and_stats_count_alike(self, run: Any) -> None:
        """Every fact is declared, and the table has the numbers of JSON."""
        (row,) = run("tables", "list", "-o", "json").json
        assert not undeclared(row, LISTED)
        assert (row["table"], row["keys"], row["versions"], row["intents"]) == ("accounts", 3, 0, 0)
        assert row["retentionMs"] == 3_600_000
        assert run("tables", "stats", "accounts", "-o", "json").json.keys() >= row.keys()
        shown = run("tables", "show", "accounts", "-o", "json").json
        assert shown.items() <= {**row, "asOfAt": shown["asOfAt"], "asOfMs": shown["asOfMs"]}.items()
        assert run("tables", "list").out.splitlines()[1].split()[:4] == ["accounts", "3", "0", "0"]
        assert "3 keys" in run("tables", "stats", "accounts").out
