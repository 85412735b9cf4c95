"""`txnctl tables versions`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.tables import versions
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestReports:
    """`versions`, `intents`, `history`; `transactions show`, `list`, `abort`."""

    def test_versions_of_a_key(self, run: Any) -> None:
        """The newest first, deletions and an open transaction's write included."""
        run("tables", "rm", "accounts", "B1")
        run("tables", "put", "accounts", "B1", "10")
        txn = run("transactions", "begin").out.strip()
        run("tables", "put", "accounts", "B1", "11", "--txn", txn)
        rows = run("tables", "versions", "accounts", "B1", "-o", "json").json
        assert not undeclared(rows[0], versions.FIELDS)
        assert [(row["value"], row["state"], row["intent"], row["deleted"]) for row in rows] == [
            ("11", "OPEN", True, False),
            ("10", "COMMITTED", False, False),
            (None, "COMMITTED", False, True),
            ("100", "COMMITTED", False, False),
        ]
        assert [int(row["version"]) for row in rows] == sorted([int(row["version"]) for row in rows])[::-1]
        lines = run("tables", "versions", "accounts", "B1").out.splitlines()
        assert [line.split()[-1] for line in lines] == ["VALUE", "11", "10", "(deleted)", "100"]

    def test_versions_of_a_key_that_never_was(self, run: Any) -> None:
        """An empty list, and a note."""
        assert run("tables", "versions", "accounts", "B9", "-o", "json").json == []
        assert "keeps nothing under B9" in run("tables", "versions", "accounts", "B9").err
