"""Lists: `txnctl/report/lists.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from storage import Store
from tests.txnctl.report_steps import Run, table, tree, words
from tests.txnctl.stuck_store import StuckStore
from txnctl.report import topics


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


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that nobody has used, which every command is told of."""
    path = tmp_path / "new.store"
    Store.create(path)
    monkeypatch.setenv("TXNCTL_STORE", str(path))
    return path


class TestPage:
    """What is on it."""

    def test_of_many_topics_the_most_stuck_are_drawn(
        self, run: Run, fresh: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The others are in the table, or counted, with the command that shows them."""
        with Store.open(fresh) as store:
            for number in range(topics.DRAWN + 3):
                store.create_topic(f"t{number}")
            producer = store.create_producer("t20")
            producer.send(b"half", txn=store.begin_transaction())
            producer.send(b"whole")
        found = tree(run("report", "--html", "-").out)
        assert len(table(found, "All topics")) == topics.DRAWN + 3
        assert sum(each.get("class") == "wide" for each in found.iter("svg")) == topics.DRAWN
        assert "3 more topics are not drawn here: txnctl transactions timeline TOPIC" in words(found)
        assert table(found, "All topics")[0]["TOPIC"] == "t20"
