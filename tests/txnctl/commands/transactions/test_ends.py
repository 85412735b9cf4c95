"""Ends of several transactions by one command, as `txnctl transactions abort` makes them: by ids, or by a choice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from txnctl.commands.transactions.abort import ABORTED
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")

TOPICS = ("orders", "payments")


@pytest.fixture
def open_txns(path: Path, run: Any) -> None:
    """0:1 and 0:2 of a loader, 0:1 on orders and 0:2 on payments; 0:3 of a settlement."""
    for label in ("job=loader", "job=loader", "job=settle"):
        run("transactions", "begin", "--label", label)
    run("produce", "orders", "-m", "x", "--txn", "0:1")
    run("produce", "payments", "-m", "x", "--txn", "0:2")


def states(run: Any) -> dict[str, str]:
    rows = (
        run("transactions", "list", "-o", "json").json
        + run("transactions", "list", "--ended", "-o", "json").json
    )
    return {row["txnId"]: row["state"] for row in rows}


@pytest.mark.usefixtures("open_txns")
class TestChoice:
    """`--label`, `--owner`, `--topic` and `--older-than`."""

    def test_a_label(self, run: Any) -> None:
        """Those with the label end, the oldest first, with the reason; the others stay."""
        rows = run(
            "transactions", "abort", "--label", "job=loader", "--yes", "--reason", "load again", "-o", "json"
        ).json
        assert [(row["txnId"], row["reasonText"]) for row in rows] == [
            ("0:1", "load again"),
            ("0:2", "load again"),
        ]
        assert not undeclared(rows[0], ABORTED)
        assert states(run) == {"0:1": "ABORTED", "0:2": "ABORTED", "0:3": "OPEN"}

    def test_a_topic_and_a_label(self, run: Any) -> None:
        """Everything given must match."""
        outcome = run("transactions", "abort", "--label", "job=loader", "--topic", "orders", "--yes")
        assert outcome.out.startswith("Aborted 0:1 (OPEN")
        assert states(run) == {"0:1": "ABORTED", "0:2": "OPEN", "0:3": "OPEN"}

    def test_the_dry_run_changes_nothing(self, run: Any) -> None:
        """Each transaction has its report, one after the other, and nothing is asked."""
        out = run("transactions", "abort", "--label", "job=loader", "--dry-run").out
        assert [line.split(" (")[0] for line in out.splitlines() if line.startswith("Abort ")] == [
            "Abort 0:1",
            "Abort 0:2",
        ]
        assert out.count("DRY RUN") == 1
        assert [line for line in out.splitlines() if line.startswith("Run: ")] == [
            'Run: txnctl transactions abort 0:1 0:2 --reason "..."'
        ]
        assert set(states(run).values()) == {"OPEN"}

    def test_no_terminal_to_ask_on(self, run: Any) -> None:
        """Without --yes the plan is shown, and nothing is changed."""
        outcome = run("transactions", "abort", "--label", "job=loader")
        assert outcome.status == 9
        assert "Abort 2 transactions?" in outcome.err
        plan = [line.split("  ")[1] for line in outcome.err.splitlines() if line.startswith("  0:")]
        assert plan == ["0:1", "0:2"]
        assert "job=loader" in outcome.err
        assert set(states(run).values()) == {"OPEN"}

    def test_a_choice_of_none(self, run: Any) -> None:
        """Nothing to do is success, and said."""
        outcome = run("transactions", "abort", "--label", "job=none", "--older-than", "1h")
        assert (outcome.status, outcome.out) == (0, "")
        assert "no unfinished transactions with label job=none older than 1h" in outcome.err
        assert run("transactions", "abort", "--owner", "nobody@", "-o", "json").json == []

    def test_ids_beside_a_choice(self, run: Any) -> None:
        """Two ways to say which are refused, and a version of several too."""
        for words in (
            ("0:1", "--label", "job=loader"),
            ("0:1", "0:2", "--if-version", "1"),
            ("--topic", "orders", "--if-version", "1"),
        ):
            outcome = run("transactions", "abort", *words, "--yes")
            assert outcome.status == 2
            assert "txnctl: hint: Give" in outcome.err
        assert set(states(run).values()) == {"OPEN"}


@pytest.mark.usefixtures("open_txns")
class TestIds:
    """Several ids."""

    def test_a_failure_does_not_stop_the_others(self, run: Any) -> None:
        """Each failure is reported, the others end, and the exit code is that of the first failure."""
        outcome = run("transactions", "abort", "0:9", "0:1", "0:8", "0:3", "--yes", "-o", "json")
        assert outcome.status == 3
        assert [row["txnId"] for row in outcome.json] == ["0:1", "0:3"]
        for txn in ("0:9", "0:8"):
            assert f"there is no transaction {txn}" in outcome.err
        assert "2 of 4 transactions failed" in outcome.err
        assert states(run) == {"0:1": "ABORTED", "0:2": "OPEN", "0:3": "ABORTED"}

    def test_an_id_given_twice(self, run: Any) -> None:
        """It is ended once."""
        rows = run("transactions", "abort", "0:1", "0:2", "0:1", "--yes", "-o", "json").json
        assert [(row["txnId"], row["already"]) for row in rows] == [("0:1", False), ("0:2", False)]

    def test_one_that_was_aborted_already(self, run: Any) -> None:
        """As alone: success, and said."""
        run("transactions", "abort", "0:1")
        outcome = run("transactions", "abort", "0:1", "0:2", "--yes")
        assert outcome.status == 0
        assert "0:1 was aborted already" in outcome.out
        assert "Aborted 0:2" in outcome.out


@pytest.mark.kills
def test_a_living_owner_is_spared(run: Any, owners: Callable[..., Popen[bytes]]) -> None:
    """An active owner keeps its transaction without --force; a detached one beside it ends all the same."""
    owners()
    (living,) = run("transactions", "list", "-o", "name").out.split()
    detached = run("transactions", "begin").out.strip()
    outcome = run("transactions", "abort", "--older-than", "0s", "--yes")
    assert outcome.status == 9
    assert f"{detached}" in outcome.out
    assert states(run) == {living: "OPEN", detached: "ABORTED"}
    assert run("transactions", "abort", "--owner", "loader", "--yes", "--force").status == 0
    assert states(run)[living] == "ABORTED"
