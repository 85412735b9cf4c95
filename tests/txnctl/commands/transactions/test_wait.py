"""`txnctl transactions wait`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.txnctl.commands.transactions.transactions_steps import ended, started
from tests.txnctl.processes import sleeps_with_store
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestWaitAndReap:
    """`transactions wait` and `transactions reap`."""

    def test_wait_gives_up(self, run: Any) -> None:
        """Exit 7."""
        run("transactions", "begin")
        assert run("transactions", "wait", "0:1", "--timeout", "20ms").status == 7

    def test_wait_wakes_at_the_end(self, run: Any, path: Path) -> None:
        """Committed elsewhere: success. `--exit-code` tells an abort apart."""
        run("transactions", "begin")
        waiting = started("transactions", "wait", "0:1", "-o", "json")
        wait_for(lambda: sleeps_with_store(waiting.pid, path), "the command waits")
        assert waiting.poll() is None
        run("transactions", "commit", "0:1")
        status, out, _ = ended(waiting)
        assert status == 0
        assert '"state": "COMMITTED"' in out
        assert "was committed at" in run("transactions", "wait", "0:1", "--exit-code").out
        run("transactions", "begin")
        run("transactions", "abort", "0:2")
        assert run("transactions", "wait", "0:2").status == 0
        assert run("transactions", "wait", "0:2", "--exit-code").status == 8

    def test_wait_ends_what_becomes_overdue(self, run: Any) -> None:
        """There is no daemon: who waits does it."""
        run("transactions", "begin", "--timeout", "100ms")
        row = run("transactions", "wait", "0:1", "--timeout", "10s", "-o", "json").json
        assert (row["state"], row["reason"]) == ("ABORTED", "timed-out")
