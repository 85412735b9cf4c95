"""`txnctl transactions show`."""

from __future__ import annotations

import os
from typing import Any

import pytest

from storage import Store
from txnctl.fields.transaction import FIELDS
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestShow:
    """`transactions show`."""

    def test_everything_of_an_open_one(self, run: Any, stuck: str) -> None:
        """What it touched, with positions; the evidence of liveness; the next command."""
        row = run("transactions", "show", stuck, "-o", "json").json
        assert not undeclared(row, FIELDS)
        assert {part["kind"]: part["messages"] for part in row["parts"]} == {"topic": 15, "subscription": 15}
        out = run("transactions", "show", stuck).out
        assert f"{stuck}         OPEN, version {row['version']}" in out
        for text in (
            "produced to orders",
            "1:0, 1:2",
            "pending on payments-in, loader",
            "detached: its deadline alone rules; last used by",
        ):
            assert text in out
        assert out.endswith(f"Next: txnctl transactions abort {stuck} --dry-run\n")

    def test_of_an_ended_one_why_and_by_whom(self, run: Any, stuck: str) -> None:
        """With the reason given."""
        run("transactions", "abort", stuck, "--reason", "the loader hangs")
        row = run("transactions", "show", stuck, "-o", "json").json
        assert (row["state"], row["reason"], row["reasonText"]) == ("ABORTED", "asked", "the loader hangs")
        assert row["idleMs"] is None
        out = run("transactions", "show", stuck).out
        assert "asked: the loader hangs" in out
        assert row["endedBy"] in out
        assert "Next" not in out

    def test_an_id_may_be_shortened_for_reading_only(self, run: Any) -> None:
        """Where it is the beginning of one id alone."""
        for _ in range(12):
            run("transactions", "begin")
        run("transactions", "commit", "0:2")
        outcome = run("transactions", "show", "0:2", "-o", "name")
        assert outcome.out == "0:2\n"
        with Store.open(os.environ["TXNCTL_STORE"]) as store:
            for _ in range(8):
                store.begin_transaction()
        outcome = run("transactions", "show", "0:3", "-o", "name")
        assert (outcome.out, outcome.err) == ("0:3\n", "")
        assert run("transactions", "abort", "0:30").status == 3
