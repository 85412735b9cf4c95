"""Tables: `txnctl/report/tables.py`."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tests.txnctl.report_steps import Run, table
from txnctl.output.human import count


class TestPage:
    """What is on it."""

    def test_subscriptions_agree_with_lag(self, run: Run, report_page: Element) -> None:
        """Verdict, level, cursor, and the backlog by class."""
        lag = {row["subscription"]: row for row in run("subs", "lag", "orders", "-o", "json").json}
        rows = table(report_page, "Subscriptions")
        assert {row["SUBSCRIPTION"] for row in rows} == set(lag)
        for row in rows:
            of = lag[row["SUBSCRIPTION"]]
            assert (row["VERDICT"], row["TYPE"]) == (of["verdict"], of["type"])
            assert row["ISOLATION LEVEL"] == of["subscriptionIsolationLevel"]
            assert row["MARK-DELETE"] == of["markDeletePosition"]
            for name in ("visible", "blocked", "uncommitted", "pending"):
                assert row[name.upper()] == count(of[name])
