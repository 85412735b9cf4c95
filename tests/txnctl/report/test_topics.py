"""Topics: `txnctl/report/topics.py`."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tests.txnctl.report_steps import Run, table
from txnctl.output.human import count


class TestPage:
    """What is on it."""

    def test_topics_agree_with_their_stats(self, run: Run, report_page: Element) -> None:
        """The same facts in the table as in JSON."""
        for row in table(report_page, "All topics"):
            stats = run("topics", "stats", row["TOPIC"], "-o", "json").json
            assert row["MESSAGES"] == count(stats["msgCount"])
            assert row["BLOCKED"] == count(stats["blockedMessages"])
            assert row["UNCOMMITTED"] == count(stats["uncommittedMessages"])
            assert row["MAX READ POSITION"] == stats["maxReadPosition"]
            assert row["LAST CONFIRMED ENTRY"] == stats["lastConfirmedEntry"]
        assert [row["TOPIC"] for row in table(report_page, "All topics")] == ["orders", "payments", "quiet"]
