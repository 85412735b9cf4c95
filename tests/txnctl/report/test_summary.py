"""The first part of the page: `txnctl/report/summary.py`."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from storage import EARLIEST, Store
from tests.txnctl.report_steps import Run, table, tree, words

TOPICS = 30


@pytest.fixture
def one_cause(unused_store: Path) -> Path:
    """One open transaction with messages on thirty topics, and one committed message behind it on each."""
    with Store.open(unused_store) as store:
        txn = store.begin_transaction()
        for number in range(TOPICS):
            name = f"sensor-{number}"
            store.create_topic(name)
            store.admin.subscriptions.create_subscription(name, "archive", initial_position=EARLIEST)
            producer = store.create_producer(name)
            producer.send(b"half", txn=txn)
            producer.send_batch([b"whole"] * (number + 1))
    return unused_store


def articles(page: Element) -> list[Element]:
    """The causes."""
    return [each for each in page.iter("article") if "finding" in each.get("class", "")]


def test_topics_of_one_cause_stand_together(run: Run, one_cause: Path) -> None:
    """One picture, of the topic with the most messages; a table of all topics; the evidence once."""
    page = tree(run("report", "--html", "-", "--store", str(one_cause)).out)
    (cause,) = [each for each in articles(page) if "warning" in each.get("class", "")]
    assert [words(each) for each in cause.iter("b")] == [f"sensor-{TOPICS - 1}"]
    assert sum(each.get("class") == "wide" for each in cause.iter("svg")) == 1
    rows = table(cause, f"{TOPICS} topics blocked by this") + table(cause, f"{TOPICS - 5} more rows")
    assert rows[0] == {
        "TOPIC": f"sensor-{TOPICS - 1}",
        "BLOCKED": str(TOPICS),
        "OLDEST FOR": rows[0]["OLDEST FOR"],
    }
    assert len(rows) == TOPICS
    assert [each.get("id") for each in cause.iter("details") if each.get("id")] == ["txn-0-1"]


def test_command_and_picture_stand_before_the_paragraphs(run: Run, one_cause: Path) -> None:
    """Headline, command, picture, topics, reason, evidence."""
    page = tree(run("report", "--html", "-", "--store", str(one_cause)).out)
    (cause,) = [each for each in articles(page) if "warning" in each.get("class", "")]
    assert [each.tag for each in cause] == ["h3", "p", "figure", "div", "details", "p", "details"]
    assert cause[1].get("class") == "command"
    figure = next(cause.iter("figure"))
    assert [each.tag for each in figure] == ["p", "svg", "svg", "figcaption"]


def test_all_but_the_causes_is_folded(run: Run, one_cause: Path) -> None:
    """Each further part is a summary with a few words about its content; parts without content are one line."""
    page = tree(run("report", "--html", "-", "--store", str(one_cause)).out)
    sections = {str(each.get("aria-labelledby")): each for each in page.iter("section")}
    for name, section in sections.items():
        assert [each.tag for each in section] == ["details"] or name == "summary"
    assert words(sections["topics"][0][0]) == "Topics 30, 30 blocked; 495 messages"
    assert words(sections["subscriptions"][0][0]) == "Subscriptions 30: 30 blocked"
    assert {"tables", "conflicts"} & set(sections) == set()
    assert "There are no tables. No conflict over a table is recorded." in words(page)
    assert all(each.get("open") is None for each in page.iter("details"))


def test_a_healthy_store_has_one_picture(run: Run, unused_store: Path) -> None:
    """Of the topic with the most messages."""
    with Store.open(unused_store) as store:
        for name, messages in (("few", 1), ("many", 5)):
            store.create_topic(name)
            store.create_producer(name).send_batch([b"x"] * messages)
    page = tree(run("report", "--html", "-").out)
    (first,) = [each for each in page.iter("section") if each.get("aria-labelledby") == "summary"]
    assert [words(each) for each in first.iter("b")] == ["many"]
    assert "Nothing is wrong." in words(first)
