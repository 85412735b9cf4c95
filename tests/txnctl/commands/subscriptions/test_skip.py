"""`txnctl subscriptions skip`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.subscriptions.subscriptions_steps import lag
from txnctl.commands.subscriptions import (
    cursor_move,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestCursor:
    """`seek`, `skip`, `clear-backlog`."""

    def test_skip_and_clear(self, run: Any, store: Store) -> None:
        """Visible ones only: what is behind an open transaction stays."""
        producer = store.create_producer("orders")
        producer.send(b"open", txn=store.begin_transaction())
        producer.send(b"after")
        row = run("subscriptions", "skip", "orders", "billing", "2", "--yes", "-o", "json").json
        assert not undeclared(row, cursor_move.SKIPPED)
        assert (row["skipped"], row["markDeletePositionAfter"]) == (2, "1:1")
        outcome = run("subscriptions", "clear-backlog", "orders", "billing", "--yes")
        assert outcome.out == "Skipped 3 messages of billing on orders: markDeletePosition 1:1 -> 1:4.\n"
        row = lag(run)
        assert (row["visible"], row["blocked"], row["uncommitted"]) == (0, 1, 1)
        assert run("subscriptions", "skip", "orders", "billing", "0", "--yes").status == 2
