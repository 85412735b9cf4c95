"""`txnctl subscriptions nack`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from txnctl.commands.subscriptions import (
    nack,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestAcknowledge:
    """`ack`, `nack`, `pending`."""

    def test_giving_back(self, run: Any, store: Store) -> None:
        """Only what was handed out; its redelivery count rises."""
        outcome = run("subscriptions", "nack", "orders", "billing", "1:0")
        assert (
            outcome.out == "None of these messages is in flight on billing on orders. Nothing was changed.\n"
        )
        with store.subscribe("orders", "billing") as consumer:
            consumer.receive_batch(5, timeout=0)
            dry = run(
                "subscriptions", "nack", "orders", "billing", "1:1", "1:2", "--dry-run", "-o", "json"
            ).json
            assert (dry["givenBack"], dry["dryRun"]) == (2, True)
            assert run("audit", "list", "-o", "json").json == []
            assert row_json(store.reports.subscription_stats("orders", "billing"))["unackedMessages"] == 5
            row = run(
                "subscriptions",
                "nack",
                "orders",
                "billing",
                "1:1",
                "1:2",
                "--delay",
                "0ms",
                "--reason",
                "why",
                "-o",
                "json",
            ).json
            assert not undeclared(row, nack.GIVEN_BACK)
            assert (row["givenBack"], row["dryRun"]) == (2, False)
            (change,) = run("audit", "list", "-o", "json").json
            assert (change["action"], change["reason"]) == ("subscriptions nack", "why")
            again = consumer.receive_batch(5, timeout=0)
            assert [(str(m.message_id), m.redelivery_count) for m in again] == [("1:1", 1), ("1:2", 1)]
