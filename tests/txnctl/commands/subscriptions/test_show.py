"""`txnctl subscriptions show`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from txnctl.commands.subscriptions.one_subscription import STATS
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestCreateAndList:
    """`create`, `list`, `show`, `stats`."""

    @pytest.mark.usefixtures("billing")
    def test_show_and_stats_name_consumers(self, run: Any, store: Store) -> None:
        """Who, alive or not, since when; and what is in flight."""
        with store.subscribe("orders", "billing", consumer_name="anna", receiver_queue_size=2) as consumer:
            consumer.receive_batch(2, timeout=0)
            for command in ("show", "stats"):
                row = run("subscriptions", command, "orders", "billing", "-o", "json").json
                assert not undeclared(row, STATS)
                assert [each["consumerName"] for each in row["consumers"]] == ["anna"]
                out = run("subscriptions", command, "orders", "billing").out
                line = next(line for line in out.splitlines() if line.startswith("  anna"))
                assert line.split()[0] == "anna"
                assert " yes " in line
            assert "of these 2 in flight" in out
            assert row["verdict"] == "behind"
        assert "Nobody is attached." in run("subscriptions", "show", "orders", "billing").out

    @pytest.mark.usefixtures("billing")
    def test_the_dead_letter_rule_is_shown(self, run: Any) -> None:
        """Count and topic, the default name too."""
        assert "dead letter  never" in run("subscriptions", "show", "orders", "billing").out
        run("subscriptions", "create", "orders", "s", "--max-redeliver-count", "3")
        assert "after 3 redeliveries, to orders-s-DLQ" in run("subscriptions", "show", "orders", "s").out
        run(
            "subscriptions",
            "update",
            "orders",
            "s",
            "--dead-letter-topic",
            "letters",
            "--max-redeliver-count",
            "1",
        )
        assert "after 1 redelivery, to letters" in run("subscriptions", "show", "orders", "s").out
