"""`txnctl transactions reap`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.waiting import let_pass, wait_for
from txnctl.fields.transaction import ROW
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestWaitAndReap:
    """`transactions wait` and `transactions reap`."""

    def test_reap_says_what_it_ends(self, run: Any) -> None:
        """A dry run names the same, as they are: open, without an end; the reason is in the record."""
        run("transactions", "begin", "--timeout", "1h")
        run("transactions", "begin", "--timeout", "1ms")
        let_pass(0.005, "the deadline")
        dry = run("transactions", "reap", "--dry-run", "-o", "json").json
        table = run("transactions", "reap", "--dry-run").out
        assert "ABORTED" not in table
        assert " timed-out " in table
        assert table.endswith('\n\nRun: txnctl transactions reap --reason "..."\n')
        few = run("transactions", "reap", "--dry-run", "-n", "5").out
        assert few.endswith('\nRun: txnctl transactions reap --count 5 --reason "..."\n')
        assert run("transactions", "show", "0:2", "-o", "json").json["state"] == "OPEN"
        real = run("transactions", "reap", "--reason", "cron", "-o", "json").json
        for rows, state in ((dry, "OPEN"), (real, "ABORTED")):
            assert [(row["txnId"], row["state"], row["reason"]) for row in rows] == [
                ("0:2", state, "timed-out")
            ]
            assert (rows[0]["endedAt"] is None) is (state == "OPEN")
            assert not undeclared(rows[0], ROW)
        assert "timed-out: cron" in run("transactions", "show", "0:2").out
        assert run("transactions", "list", "-o", "name").out == "0:1\n"
        assert run("transactions", "reap", "-o", "json").json == []
        assert run("transactions", "reap", "--dry-run").out == ""


class TestDeath:
    """Rule 9: kill -9 of an owner shows as orphaned at once, and the next writer frees what it held."""

    def test_it_is_orphaned_at_once(self, run: Any, orphan: Path) -> None:
        """In list and show, table and JSON; the command was told."""
        row = run("transactions", "list", "-o", "json").json[0]
        assert (row["state"], row["ownerState"], row["orphaned"]) == ("OPEN", "dead", True)
        assert "ORPHANED" in run("transactions", "list").out
        out = run("transactions", "show", "0:1").out
        assert "ORPHANED: its process is dead" in out
        assert out.endswith("Next: txnctl transactions reap\n")
        wait_for(lambda: orphan.exists() and orphan.read_text() == "SIGTERM", "the command was told")

    @pytest.mark.usefixtures("orphan")
    def test_reap_frees_it_too(self, run: Any) -> None:
        """And names it; the owner check of abort does not stand in the way either."""
        assert run("transactions", "abort", "0:1", "--dry-run").status == 0
        rows = run("transactions", "reap", "-o", "json").json
        assert [(row["txnId"], row["reason"]) for row in rows] == [("0:1", "owner-dead")]
