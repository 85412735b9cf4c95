"""Transactions: `txnctl/report/transactions.py`."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest

from tests.txnctl.report_steps import Run, table, tree, words
from tests.txnctl.stuck_store import StuckStore
from txnctl.output.escape import printable
from txnctl.output.human import count


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StuckStore]:
    """A store in trouble, looked at by all tests here."""
    found = StuckStore(tmp_path_factory.mktemp("report") / "bank.store")
    yield found
    found.end()


@pytest.fixture
def text(run: Run, stuck: StuckStore, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its page."""
    monkeypatch.setenv("TXNCTL_STORE", str(stuck.path))
    outcome = run("report", "--html", "-")
    assert (outcome.status, outcome.err) == (0, "")
    return str(outcome.out)


@pytest.fixture
def page(text: str) -> Element:
    """The page as a tree: it is well-formed."""
    return tree(text)


class TestPage:
    """What is on it."""

    def test_transactions_agree_with_explain(self, run: Run, page: Element, stuck: StuckStore) -> None:
        """Each with its evidence and the one piece of advice; the link leads there."""
        rows = table(page, "Open transactions")
        assert [row["ALIVE"] for row in rows].count("ORPHANED") == 1
        assert {"stopped", "detached"} < {row["ALIVE"] for row in rows}
        by_id = {each.get("id"): each for each in page.iter("details")}
        for row in rows:
            explained = run("transactions", "explain", row["TXN"], "-o", "json").json
            told = words(by_id[f"txn-0-{row['TXN'][2:]}"])
            assert explained["because"] in told
            assert explained["command"] is None or explained["command"] in told
            assert printable(explained["owner"]) in told
            assert row["FREES"] == count(sum(each["frees"] for each in explained["blocks"]))
        assert rows[0]["TXN"] == str(stuck.idle)
        assert "holds keys of table balances" in words(by_id[f"txn-0-{stuck.idle.least}"])
