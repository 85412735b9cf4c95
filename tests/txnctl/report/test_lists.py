"""Lists: `txnctl/report/lists.py`."""

from __future__ import annotations

from pathlib import Path

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
