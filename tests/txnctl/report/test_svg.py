"""Svg: `txnctl/report/svg.py`."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest

from tests.txnctl.report_steps import Run, tree, words
from tests.txnctl.stuck_store import StuckStore


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

    def test_each_topic_is_drawn_twice(self, page: Element) -> None:
        """For wide and for narrow screens; each picture has a name and says in words what it shows."""
        pictures = [each for each in page.iter("svg") if each.get("role") == "img"]
        assert [each.get("class") for each in pictures] == ["wide", "narrow"] * 3
        named = {each.get("id"): words(each) for each in page.iter() if each.get("id")}
        for picture in pictures:
            title, description = str(picture.get("aria-labelledby")).split()
            assert named[title].startswith("Positions of ")
            assert "READ_COMMITTED reads up to" in named[description]
