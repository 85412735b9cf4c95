"""`txnctl subscriptions ack`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.txnctl.commands.subscriptions.subscriptions_steps import lag
from txnctl.commands.subscriptions import (
    ack,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestAcknowledge:
    """`ack`, `nack`, `pending`."""

    def test_one_by_one_and_cumulative(self, run: Any) -> None:
        """The cursor follows; a second time changes nothing, and is a conflict in a transaction."""
        row = run("subscriptions", "ack", "orders", "billing", "1:0", "1:2", "-o", "json").json
        assert not undeclared(row, ack.ACKNOWLEDGED)
        assert (row["acknowledged"], row["txnId"], row["markDeletePosition"]) == (2, None, "1:0")
        assert (
            run("subscriptions", "ack", "orders", "billing", "1:0", "1:2", "-o", "json").json["acknowledged"]
            == 0
        )
        run("transactions", "begin")
        assert run("subscriptions", "ack", "orders", "billing", "1:2", "--txn", "0:1").status == 4
        assert lag(run)["visible"] == 3
        run("subscriptions", "update", "orders", "billing", "--subscription-type", "exclusive")
        outcome = run("subscriptions", "ack", "orders", "billing", "1:3", "--cumulative")
        assert (
            outcome.out == "Acknowledged everything up to 1:3 of billing on orders; markDeletePosition 1:3.\n"
        )
        assert lag(run)["visible"] == 1

    def test_what_is_pending_elsewhere_is_a_conflict(self, run: Any) -> None:
        """Naming the transaction; --force aborts it."""
        run("transactions", "begin")
        run("subscriptions", "ack", "orders", "billing", "1:0", "--txn", "0:1")
        outcome = run("subscriptions", "ack", "orders", "billing", "1:0", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "transaction-conflict")
        assert "0:1" in outcome.error["message"]
        assert run("subscriptions", "ack", "orders", "billing", "1:0", "--force").status == 0
        assert run("transactions", "show", "0:1", "-o", "json").json["state"] == "ABORTED"

    @pytest.mark.parametrize("text", ["1", "latest", "1:0:x", "1:-1", "0:\x1b"])
    def test_what_is_no_message_id(self, run: Any, text: str) -> None:
        """Exit 2, and harmless."""
        outcome = run("subscriptions", "ack", "orders", "billing", text)
        assert outcome.status == 2
        assert "\x1b" not in outcome.err
        assert lag(run)["visible"] == 5
