"""Topics: `txnctl/report/topics.py`."""

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

    def test_topics_agree_with_their_stats(self, run: Run, page: Element) -> None:
        """The same facts in the table as in JSON."""
        for row in table(page, "All topics"):
            stats = run("topics", "stats", row["TOPIC"], "-o", "json").json
            assert row["MESSAGES"] == count(stats["msgCount"])
            assert row["BLOCKED"] == count(stats["blockedMessages"])
            assert row["UNCOMMITTED"] == count(stats["uncommittedMessages"])
            assert row["MAX READ POSITION"] == stats["maxReadPosition"]
            assert row["LAST CONFIRMED ENTRY"] == stats["lastConfirmedEntry"]
        assert [row["TOPIC"] for row in table(page, "All topics")] == ["orders", "payments", "quiet"]
