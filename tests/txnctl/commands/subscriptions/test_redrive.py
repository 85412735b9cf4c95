"""`txnctl subscriptions redrive`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from storage import Store
from txnctl.commands.subscriptions import redrive
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)
WORDS = ("subscriptions", "redrive", "orders", "billing")


@pytest.fixture
def letters(billing: None, store: Store) -> None:
    """The five messages of billing are dead letters."""
    with store.subscribe("orders", "billing", max_redeliver_count=0) as consumer:
        for message in consumer.receive_batch(9, timeout=0):
            consumer.negative_acknowledge(message, delay=0)
        assert not consumer.receive_batch(9, timeout=0)


@pytest.mark.usefixtures("letters")
class TestRedrive:
    """Dead letters go back."""

    def test_some_and_then_the_rest(self, run: Any) -> None:
        """A dry run says what the real one does; each letter goes once; the audit trail has the reason."""
        dry = run(*WORDS, "-n", "2", "--dry-run", "-o", "json").json
        real = run(*WORDS, "-n", "2", "--reason", "mended", "-o", "json").json
        assert not undeclared(real, redrive.REDRIVEN)
        assert (dry.pop("dryRun"), real.pop("dryRun")) == (True, False)
        assert dry == real == {
            "topic": "persistent://public/default/orders", "subscription": "billing", "redriven": 2, "inBacklog": 0,
            "deadLetterTopic": "persistent://public/default/orders-billing-DLQ", "originalsGone": 0,
        }  # fmt: skip
        assert run(*WORDS, "--dry-run").out == (
            "DRY RUN: nothing was changed.\n\n"
            "Would give 3 dead letters of orders-billing-DLQ back to billing on orders.\n"
        )
        for count in ("3 dead letters", "0 dead letters"):
            expected = f"Gave {count} of orders-billing-DLQ back to billing on orders.\n"
            assert run(*WORDS, "--reason", "mended").out == expected
        changes = run("audit", "list", "-o", "json").json
        assert [change["reason"] for change in changes if change["action"] == "subscriptions redrive"] == [
            "mended", "mended",
        ]  # fmt: skip
        out = run("consume", "orders", "-s", "billing", "-n", "5").out
        assert [json.loads(line)["value"] for line in out.splitlines()] == ["0", "1", "2", "3", "4"]

    def test_a_message_in_the_backlog_already(self, run: Any) -> None:
        """After a seek nothing is given back twice, and the report says so."""
        run("subscriptions", "seek", "orders", "billing", "1:3", "--yes")
        assert run(*WORDS).out == (
            "Gave 3 dead letters of orders-billing-DLQ back to billing on orders.\n"
            "2 messages in the backlog already.\n"
        )

    def test_nothing_to_find(self, run: Any) -> None:
        """A topic without dead letters is not found."""
        assert run("subscriptions", "redrive", "orders", "nobody").status == 3
        assert run(*WORDS, "--dead-letter-topic", "grave").status == 3
