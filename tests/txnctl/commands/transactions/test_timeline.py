"""`txnctl transactions timeline`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store
from tests.row_json import row_json
from txnctl.commands.transactions.timeline import MODEL
from txnctl.output.field import undeclared


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An open store with a transaction stuck on `orders`, that every command is told of."""
    Store.create(tmp_path / "s")
    monkeypatch.setenv("TXNCTL_STORE", str(tmp_path / "s"))
    with Store.open(tmp_path / "s") as opened:
        opened.create_topic("orders")
        opened.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
        producer = opened.create_producer("orders")
        producer.send(b"half", txn=opened.begin_transaction(labels={"job": "x\x1b[2J"}))
        producer.send(b"whole")
        yield opened
        assert opened.maintenance.verify_store() == []


class TestCommand:
    """`transactions timeline`."""

    def test_json_is_the_model(self, run: Any, store: Store) -> None:
        """Every field of it is declared."""
        shown, model = (
            run("transactions", "timeline", "orders", "-o", "json").json,
            row_json(store.reports.topic_timeline("orders")),
        )
        assert not undeclared(shown, MODEL)
        for row in (shown, model):
            for each in row["openTransactions"]:
                for name in ("ageMs", "idleMs", "deadlineInMs"):
                    del each[name]
            del row["asOfAt"], row["asOfMs"]
        assert shown == model

    @pytest.mark.parametrize(
        ("variables", "is_ascii"),
        [
            ({"LANG": "C"}, True),
            ({"LANG": "de_DE.UTF-8"}, False),
            ({"LANG": "en_US.utf8", "LC_ALL": "C"}, True),
            ({"LC_ALL": "C.UTF-8"}, False),
            ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
        ],
    )
    def test_the_locale_decides_about_ascii(
        self,
        run: Any,
        store: Store,
        monkeypatch: pytest.MonkeyPatch,
        variables: dict[str, str],
        is_ascii: bool,
    ) -> None:
        """Unless --ascii asks for it. No label drives the terminal."""
        for name in ("LANG", "LC_ALL", "LC_CTYPE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        out = run("transactions", "timeline", "orders").out
        assert out.isascii() is is_ascii
        assert "\x1b" not in out
        assert run("transactions", "timeline", "orders", "--ascii").out.isascii()
        assert out.endswith("Next: txnctl transactions explain 0:1\n")

    @pytest.mark.parametrize("columns", [50, 72, 120])
    def test_it_fits_the_terminal(
        self, run: Any, store: Store, monkeypatch: pytest.MonkeyPatch, columns: int
    ) -> None:
        """The drawing, and what stands below it."""
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")
        lines = run("transactions", "timeline", "orders", terminal=True).out.splitlines()
        assert max(map(len, lines[1:])) <= columns

    def test_an_unknown_topic_is_not_found(self, run: Any, store: Store) -> None:
        """Exit 3."""
        assert run("transactions", "timeline", "nowhere").status == 3


def test_a_line_of_the_legend_ends_between_two_signs(run: Any, path: Path) -> None:
    """Whatever the width, a sign stands with what it means."""
    with Store.open(path) as store:
        store.create_topic("legend")
        store.admin.subscriptions.create_subscription("legend", "s")
        producer, txn = store.create_producer("legend"), store.begin_transaction()
        producer.send(b"half", txn=txn)
        producer.send(b"whole")
    entries = (": blocked", "its messages", "waits for it", "and after it", "in flight")
    out = run("transactions", "timeline", "legend", "--ascii").out
    assert [each for each in entries if each not in out] == []
    assert "\u00a0" not in out
