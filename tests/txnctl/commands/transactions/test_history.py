"""`txnctl transactions history`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.txnctl.an_hour_ago import an_hour_ago
from tests.txnctl.commands.transactions.desk_steps import Run, squeezed
from txnctl.fields.transaction import ROW
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def path(hour_old: Path) -> Iterator[Path]:
    """The store of an hour ago; verified in full when the test is over."""
    yield hour_old
    with Store.open(hour_old) as store:
        assert store.maintenance.verify_store() == []


class TestHistory:
    """`transactions history`."""

    @pytest.fixture
    def ended(self, path: Path) -> None:
        """Half an hour ago one timed out; since then one was committed and one aborted, which began before it."""
        clock = an_hour_ago()
        with Store.open(path, clock=clock) as store:
            for _ in range(3):
                store.begin_transaction(timeout=7200)
            store.begin_transaction(timeout=60)
            clock.advance(1800)
            store.admin.transactions.reap_transactions()
        with Store.open(path) as store:
            store.create_producer("orders").send(b"1", txn="0:2")
            store.commit_transaction("0:2")
            store.admin.transactions.abort_transaction("0:1", reason="wrong file")

    @pytest.mark.usefixtures("ended")
    def test_the_one_that_ended_last_comes_first(self, run: Run) -> None:
        """Outcome, reason, by whom, after how long; and how many in which way."""
        rows = run("transactions", "history", "-o", "json").json
        assert [(row["txnId"], row["state"], row["reason"]) for row in rows] == [
            ("0:1", "ABORTED", "asked"),
            ("0:2", "COMMITTED", None),
            ("0:4", "ABORTED", "timed-out"),
        ]
        assert not undeclared(rows[0], ROW)
        assert rows[2]["ageMs"] == 1_800_000
        lines = squeezed(run("transactions", "history").out)
        assert lines[0].startswith("TXN STATE ENDED OPEN FOR REASON BY ")
        assert "1h00m asked: wrong file" in lines[1]
        assert lines[-1] == "1 asked, 1 committed, 1 timed-out"

    @pytest.mark.usefixtures("ended")
    @pytest.mark.parametrize(
        ("words", "found"),
        [
            (("--topic", "orders"), "0:2\n"),
            (("--reason", "timed-out"), "0:4\n"),
            (("--reason", "TIMED_OUT"), "0:4\n"),
            (("--since", "10m"), "0:1\n0:2\n"),
            (("--since", "2h", "-n", "1"), "0:1\n"),
            (("--since", "2020-01-01T00:00:00Z"), "0:1\n0:2\n0:4\n"),
            (("--since", "2100-01-01"), ""),
        ],
    )
    def test_what_was_asked_for(self, run: Run, words: tuple[str, ...], found: str) -> None:
        """By topic, reason, time, number."""
        assert run("transactions", "history", *words, "-o", "name").out == found

    @pytest.mark.usefixtures("ended")
    def test_an_end_of_the_list_that_is_none_is_said(self, run: Run) -> None:
        """On standard error in every format; nothing is said where all are shown, or as many as were asked for."""
        assert run("transactions", "history").err == ""
        for _ in range(48):
            run("transactions", "abort", run("transactions", "begin").out.strip())
        for words in (("history",), ("history", "-o", "json"), ("history", "-o", "name")):
            outcome = run("transactions", *words)
            assert outcome.err == "txnctl: 50 transactions shown, and there are more: -n N shows N\n"
        assert len(outcome.out.splitlines()) == 50
        assert run("transactions", "history", "-n", "50").err == ""

    @pytest.mark.parametrize(
        ("words", "status"),
        [(("--reason", "because"), 2), (("--since", "yesterday"), 2), (("--topic", "nowhere"), 3)],
    )
    def test_what_cannot_be_asked(self, run: Run, words: tuple[str, ...], status: int) -> None:
        """Bad input, or not found."""
        assert run("transactions", "history", *words).status == status

    def test_nothing_is_success(self, run: Run) -> None:
        """An empty array, or a note."""
        assert run("transactions", "history", "-o", "json").json == []
        assert "no transaction has ended yet" in run("transactions", "history").err
        assert "no transaction ended like that" in run("transactions", "history", "--owner", "nobody").err


def test_labels_and_owner_choose(run: Run) -> None:
    """As in `transactions list`."""
    run("transactions", "begin", "--label", "job=loader")
    run("transactions", "begin")
    for txn in ("0:1", "0:2"):
        run("transactions", "abort", txn)
    assert run("transactions", "history", "--label", "job=loader", "-o", "name").out == "0:1\n"
    assert run("transactions", "history", "--owner", "nobody@", "-o", "name").out == ""
