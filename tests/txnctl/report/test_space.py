"""Space: `txnctl/report/space.py`."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tests.txnctl.report_steps import table
from tests.txnctl.stuck_store import EVIL
from txnctl.output.escape import printable


class TestPage:
    """What is on it."""

    def test_producers_tables_space_and_what_happened(self, report_page: Element) -> None:
        """Who publishes how, which keys are held by whom, where the space goes, what was done and why."""
        (owner,) = [row for row in table(report_page, "Producers") if row["TOPIC"] == "payments"]
        assert (owner["MODE"], owner["EPOCH"]) == ("Exclusive", "0")
        (balances,) = table(report_page, "Tables")
        assert (balances["TABLE"], balances["INTENTS"]) == ("balances", "1")
        assert {"txns", "entries"} & {row["DATABASE"] for row in table(report_page, "Where the space goes")}
        changes = table(report_page, "Last changes")
        assert printable(EVIL) in {each["REASON"] for each in changes}
        (ended,) = table(report_page, "Ended transactions, those begun last")
        assert (ended["STATE"], ended["MESSAGES"]) == ("ABORTED", "30")
