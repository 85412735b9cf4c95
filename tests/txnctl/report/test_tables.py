"""Tables: `txnctl/report/tables.py`."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest

from tests.txnctl.report_steps import Run, table, tree
from tests.txnctl.stuck_store import StuckStore
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

    def test_subscriptions_agree_with_lag(self, run: Run, page: Element) -> None:
        """Verdict, level, cursor, and the backlog by class."""
        lag = {row["subscription"]: row for row in run("subs", "lag", "orders", "-o", "json").json}
        rows = table(page, "Subscriptions")
        assert {row["SUBSCRIPTION"] for row in rows} == set(lag)
        for row in rows:
            of = lag[row["SUBSCRIPTION"]]
            assert (row["VERDICT"], row["TYPE"]) == (of["verdict"], of["type"])
            assert row["ISOLATION LEVEL"] == of["subscriptionIsolationLevel"]
            assert row["MARK-DELETE"] == of["markDeletePosition"]
            for name in ("visible", "blocked", "uncommitted", "pending"):
                assert row[name.upper()] == count(of[name])
