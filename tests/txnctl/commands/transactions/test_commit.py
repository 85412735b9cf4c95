"""`txnctl transactions commit`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.waiting import let_pass

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestBeginAndCommit:
    """A transaction across several command lines."""

    def test_an_unknown_one_is_not_found(self, run: Any) -> None:
        """Exit 3, for reading and for changing."""
        for command in ("show", "commit", "abort", "wait"):
            assert run("transactions", command, "0:77").status == 3

    def test_after_its_deadline_it_cannot_be_committed(self, run: Any) -> None:
        """Exit 4; it is aborted, and `list --ended` tells why."""
        run("transactions", "begin", "--timeout", "1ms")
        let_pass(0.005, "the deadline")
        outcome = run("transactions", "commit", "0:1", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "transaction-timed-out")
        assert run("transactions", "list", "--ended", "-o", "json").json[0]["reason"] == "timed-out"
