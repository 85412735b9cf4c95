"""`txnctl tables history`."""

from __future__ import annotations

from typing import Any

import pytest

from txnctl.commands.tables import history
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


class TestReports:
    """`versions`, `intents`, `history`; `transactions show`, `list`, `abort`."""

    def test_history_names_loser_winner_and_key(self, run: Any) -> None:
        """The newest first, of one table or of all."""
        run("tables", "create", "limits")
        for table, key in (("accounts", "B1"), ("limits", "L")):
            txn = run("transactions", "begin").out.strip()
            run("tables", "put", table, key, "1", "--txn", txn)
            run("tables", "put", table, key, "2")
        rows = run("tables", "history", "-o", "json").json
        assert not undeclared(rows[0], history.CONFLICTS)
        assert [(row["kind"], row["loser"], row["winner"], row["table"], row["key"]) for row in rows] == [
            ("push", "0:6", "0:7", "limits", "L"),
            ("push", "0:4", "0:5", "accounts", "B1"),
        ]
        assert run("tables", "history", "accounts", "-o", "json").json == rows[1:]
        assert run("tables", "history", "-n", "1", "-o", "json").json == rows[:1]
        assert run("tables", "history", "-n", "1", "--since", "1h", "-o", "json").json == rows[:1]
        assert run("tables", "history", "--since", rows[0]["happenedAt"], "-o", "json").json[:1] == rows[:1]
        later = run("tables", "history", "--since", "2999-01-01")
        assert (later.out, later.err) == ("", "txnctl: no conflicts since then\n")
        line = run("tables", "history", "accounts").out.splitlines()[1]
        assert line.split()[1:] == ["push", "0:4", "0:5", "accounts", "B1"]
        run("tables", "create", "quiet")
        assert "no conflicts over keys of quiet" in run("tables", "history", "quiet").err
