"""Transactions: `txnctl/report/transactions.py`."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from tests.txnctl.report_steps import Run, table, words
from tests.txnctl.stuck_store import StuckStore
from txnctl.output.escape import printable
from txnctl.output.human import count


class TestPage:
    """What is on it."""

    def test_transactions_agree_with_explain(
        self, run: Run, report_page: Element, stuck_store: StuckStore
    ) -> None:
        """Each with its evidence and the one piece of advice; the link leads there."""
        rows = table(report_page, "Open transactions")
        assert [row["ALIVE"] for row in rows].count("ORPHANED") == 1
        assert {"stopped", "detached"} < {row["ALIVE"] for row in rows}
        by_id = {each.get("id"): each for each in report_page.iter("details")}
        for row in rows:
            explained = run("transactions", "explain", row["TXN"], "-o", "json").json
            told = words(by_id[f"txn-0-{row['TXN'][2:]}"])
            assert explained["because"] in told
            assert explained["command"] is None or explained["command"] in told
            assert printable(explained["owner"]) in told
            assert row["FREES"] == count(sum(each["frees"] for each in explained["blocks"]))
        assert rows[0]["TXN"] == str(stuck_store.idle)
        assert "holds keys of table balances" in words(by_id[f"txn-0-{stuck_store.idle.least}"])
