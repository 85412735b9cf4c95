"""Lists: `txnctl/report/lists.py`."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import pytest

from storage import Store
from tests.txnctl.report_steps import Run, table, tree, words
from txnctl.report import topics


class TestPage:
    """What is on it."""

    def test_of_many_topics_the_most_stuck_are_drawn(
        self, run: Run, unused_store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The others are in the table, or counted, with the command that shows them."""
        with Store.open(unused_store) as store:
            for number in range(topics.DRAWN + 4):
                store.create_topic(f"t{number}")
            producer = store.create_producer("t5")
            producer.send(b"half", txn=store.begin_transaction())
            producer.send(b"whole")
        found = tree(run("report", "--html", "-").out)
        assert len(table(found, "All topics")) == topics.DRAWN + 4
        assert sum(each.get("class") == "wide" for each in found.iter("svg")) == topics.DRAWN + 1
        assert "3 more topics are not drawn here: txnctl transactions timeline TOPIC" in words(found)
        assert table(found, "All topics")[0]["TOPIC"] == "t5"

    def test_the_tile_counts_what_the_table_calls_blocked(self, report_page: Element) -> None:
        """A subscription that nobody reads has the verdict no-consumer, also where messages are blocked behind."""
        listed = table(report_page, "Subscriptions")
        blocked = [row for row in listed if row["VERDICT"] in ("blocked", "mixed")]
        assert any(row["VERDICT"] == "no-consumer" and row["BLOCKED"] != "0" for row in listed)
        tiles = {words(each[0]): words(each[1]) for each in report_page.iter("div") if len(each) == 2}
        assert tiles["subscriptions blocked"] == f"{len(blocked)} of {len(listed)}"
