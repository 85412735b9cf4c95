"""`txnctl subscriptions pending`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.txnctl.commands.subscriptions.subscriptions_steps import lag
from txnctl.commands.subscriptions import (
    pending,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestAcknowledge:
    """`ack`, `nack`, `pending`."""

    def test_in_a_transaction_it_is_pending(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Listed until the end; then done, or undone. TXNCTL_TXN counts, --txn before it."""
        assert run("subscriptions", "pending", "orders", "billing", "-o", "json").json == []
        run("transactions", "begin")
        run("transactions", "begin")
        monkeypatch.setenv("TXNCTL_TXN", "0:1")
        outcome = run("subscriptions", "ack", "orders", "billing", "1:0")
        assert outcome.out == "Pending in 0:1: the acknowledgement of 1 message of billing on orders.\n"
        assert run("subscriptions", "ack", "orders", "billing", "1:1", "--txn", "0:2").status == 0
        rows = run("subscriptions", "pending", "orders", "billing", "-o", "json").json
        assert [(row["messageId"], row["kind"], row["txnId"]) for row in rows] == [
            ("1:0", "individual", "0:1"),
            ("1:1", "individual", "0:2"),
        ]
        assert not undeclared(rows[0], pending.PENDING)
        assert run("subscriptions", "pending", "orders", "billing").out.splitlines()[1].split()[:2] == [
            "1:0", "individual",
        ]  # fmt: skip
        assert lag(run)["pending"] == 2
        run("transactions", "commit", "0:1")
        run("transactions", "abort", "0:2")
        assert (lag(run)["pending"], lag(run)["visible"]) == (0, 4)
