"""`txnctl transactions begin`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from txnctl.commands.transactions.abort import ABORTED
from txnctl.commands.transactions.commit import COMMITTED
from txnctl.fields.transaction import FIELDS
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestBeginAndCommit:
    """A transaction across several command lines."""

    def test_begin_prints_the_id_alone(self, run: Any) -> None:
        """In the default format and with -o name; JSON says more."""
        assert (run("transactions", "begin").out, run("txn", "begin", "-o", "name").out) == ("0:1\n", "0:2\n")
        row = run(
            "txn", "begin", "--timeout", "15m", "--label", "job=load", "--label", "on=x=y", "-o", "json"
        ).json
        assert not undeclared(row, FIELDS)
        assert (row["txnId"], row["state"], row["timeoutMs"]) == ("0:3", "OPEN", 900_000)
        assert row["labels"] == {"job": "load", "on": "x=y"}
        assert row["ownerState"] == "detached"

    @pytest.mark.parametrize(
        "words",
        [("--timeout", "25h"), ("--timeout", "0ms"), ("--label", "a=1", "--label", "a=2"), ("--label", "=x")],
    )
    def test_begin_refuses_what_is_out_of_bounds(self, run: Any, words: tuple[str, ...]) -> None:
        """And begins nothing."""
        assert run("transactions", "begin", *words).status == 2
        assert run("transactions", "list", "-o", "json").json == []

    @pytest.mark.parametrize("ending", ["commit", "abort"])
    def test_an_ending_can_be_repeated_and_says_so(self, run: Any, ending: str) -> None:
        """A script that lost the answer may ask again."""
        run("transactions", "begin")
        first, again = [run("transactions", ending, "0:1", "-o", "json") for _ in range(2)]
        assert (first.status, first.json["already"]) == (0, False)
        assert (again.status, again.json["already"]) == (0, True)
        assert not undeclared(again.json, COMMITTED if ending == "commit" else ABORTED)
        assert "already" in run("transactions", ending, "0:1").out

    @pytest.mark.parametrize(("first", "then"), [("commit", "abort"), ("abort", "commit")])
    def test_the_other_ending_is_a_conflict_that_says_when_and_by_whom(
        self, run: Any, first: str, then: str
    ) -> None:
        """Exit 4."""
        run("transactions", "begin")
        run("transactions", first, "0:1")
        outcome = run("transactions", then, "0:1")
        assert outcome.status == 4
        assert f"was {first.replace('commit', 'committ')}ed at 20" in outcome.err
        assert "by " in outcome.err

    @pytest.mark.parametrize("words", [("commit",), ("abort",), ("show",), ("wait",)])
    def test_without_an_id_the_environment_names_it(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
    ) -> None:
        """TXNCTL_TXN; without that either, it is bad input."""
        run("transactions", "begin")
        assert run("transactions", *words).status == 2
        monkeypatch.setenv("TXNCTL_TXN", "nonsense")
        outcome = run("transactions", *words)
        assert outcome.status == 2
        assert "TXNCTL_TXN" in outcome.err
        monkeypatch.setenv("TXNCTL_TXN", "(0,1)")
        if words == ("wait",):
            run("transactions", "commit")
        assert run("transactions", *words).status == 0


class TestDeath:
    """Rule 9: kill -9 of an owner shows as orphaned at once, and the next writer frees what it held."""

    @pytest.mark.usefixtures("orphan")
    def test_the_next_writer_frees_what_it_held(self, run: Any, path: Path) -> None:
        """Whoever writes next; a living process with the same pid would not keep it open."""
        run("transactions", "begin")
        row = run("transactions", "show", "0:1", "-o", "json").json
        assert (row["state"], row["reason"]) == ("ABORTED", "owner-dead")
        with Store.open(path, read_only=True) as store:
            assert store.reader("orders").read_batch(10) == []
            assert row_json(store.reports.topic_stats("orders"))["ongoingTxnCount"] == 0
