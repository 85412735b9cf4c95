"""Space: `txnctl/report/space.py`."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest

from tests.txnctl.report_steps import Run, table, tree
from tests.txnctl.stuck_store import EVIL, StuckStore
from txnctl.output.escape import printable


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

    def test_producers_tables_space_and_what_happened(self, page: Element) -> None:
        """Who publishes how, which keys are held by whom, where the space goes, what was done and why."""
        (owner,) = [row for row in table(page, "Producers") if row["TOPIC"] == "payments"]
        assert (owner["MODE"], owner["EPOCH"]) == ("Exclusive", "0")
        (balances,) = table(page, "Tables")
        assert (balances["TABLE"], balances["INTENTS"]) == ("balances", "1")
        assert {"txns", "entries"} & {row["DATABASE"] for row in table(page, "Where the space goes")}
        changes = table(page, "Last changes")
        assert printable(EVIL) in {each["REASON"] for each in changes}
        (ended,) = table(page, "Ended transactions, those begun last")
        assert (ended["STATE"], ended["MESSAGES"]) == ("ABORTED", "30")
