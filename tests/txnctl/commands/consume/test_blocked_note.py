"""Blocked: `txnctl/commands/consume/blocked_note.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestReading:
    """Without -s."""

    def test_open_and_aborted_transactions(self, run: Any, path: Path) -> None:
        """READ_COMMITTED stops and says why; READ_UNCOMMITTED shows all with their states."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            aborted, opened = store.begin_transaction(), store.begin_transaction()
            producer.send(b"dropped", txn=aborted)
            store.admin.transactions.abort_transaction(aborted)
            producer.send(b"first")
            producer.send_batch([b"held 1", b"held 2"], txn=opened)
            producer.send_batch([b"behind 1", b"behind 2", b"behind 3"])
        outcome = run("consume", "orders", "-o", "value")
        assert (outcome.status, outcome.out) == (0, "first\n")
        assert "3 committed messages wait behind open transaction 0:2, with 2 uncommitted" in outcome.err
        for level in ("READ_UNCOMMITTED", "read-uncommitted", "read_uncommitted"):
            outcome = run("consume", "orders", "--isolation-level", level)
            assert [(row["value"], row["txnState"]) for row in outcome.rows] == [
                ("dropped", "ABORTED"),
                ("first", None),
                ("held 1", "OPEN"),
                ("held 2", "OPEN"),
                ("behind 1", None),
                ("behind 2", None),
                ("behind 3", None),
            ]
            assert outcome.err == ""
        assert run("consume", "orders", "-n", "1").err == ""

    def test_uncommitted_messages_alone_are_said_too(self, run: Any, path: Path) -> None:
        """Nothing waits, and yet it is not the end."""
        with Store.open(path) as store:
            store.create_producer("orders").send(b"x", txn=store.begin_transaction())
        outcome = run("consume", "orders")
        assert outcome.out == ""
        assert "1 uncommitted message not shown, the first of open transaction 0:1" in outcome.err
