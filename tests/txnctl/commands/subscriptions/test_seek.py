"""`txnctl subscriptions seek`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.subscriptions.subscriptions_steps import lag
from txnctl.commands.subscriptions import (
    seek,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestCursor:
    """`seek`, `skip`, `clear-backlog`."""

    def test_seek_back_needs_no_confirmation_and_says_the_way_back(self, run: Any) -> None:
        """What was acknowledged is delivered again."""
        run("subscriptions", "clear-backlog", "orders", "billing", "--yes")
        outcome = run("subscriptions", "seek", "orders", "billing", "1:2")
        assert outcome.status == 0
        assert "Moved billing on orders: markDeletePosition 1:4 -> 1:1." in outcome.out
        assert "Back again: txnctl subscriptions seek orders billing 1:5" in outcome.out
        assert lag(run)["visible"] == 3
        assert run("subscriptions", "seek", "orders", "billing", "1:5", "--yes").status == 0
        assert lag(run)["visible"] == 0

    @pytest.mark.parametrize("to", ["latest", "@2999-01-01", "1:4"])
    def test_seek_forwards_asks(self, run: Any, to: str) -> None:
        """Exit 9 and the plan, without a terminal and --yes."""
        outcome = run("subscriptions", "seek", "orders", "billing", to)
        assert outcome.status == 9
        assert "moves     markDeletePosition 1:-1 -> 1:" in outcome.err
        assert lag(run)["visible"] == 5

    @pytest.mark.parametrize("to", ["1:6", "99:0", "1:9:3"])
    def test_a_position_beyond_the_end_is_the_end_and_said_to_be(self, run: Any, to: str) -> None:
        """For `seek`, `create --from` and `consume --from`: whatever is sent later is not missed."""
        said = f"txnctl: {to} lies beyond the end of orders, and is taken as the end: just after 1:4\n"
        assert run("subscriptions", "seek", "orders", "billing", to, "--yes").err == said
        assert run("subscriptions", "create", "orders", "later", "--from", to).err == said
        assert said in run("consume", "orders", "-s", "latest", "--from", to).err
        run("produce", "orders", "-m", "sixth")
        for name in ("billing", "later", "latest"):
            assert run("consume", "orders", "-s", name, "-o", "value").out == "sixth\n"

    @pytest.mark.parametrize("to", ["1:5", "1:4", "latest", "earliest", "0:0", "@2999-01-01"])
    def test_a_position_that_is_taken_as_it_stands(self, run: Any, to: str) -> None:
        """The very end is not beyond it."""
        assert run("subscriptions", "seek", "orders", "billing", to, "--yes").err == ""

    def test_seek_is_refused_while_something_is_pending(self, run: Any) -> None:
        """Exit 4 naming the transaction; --force aborts it."""
        run("transactions", "begin")
        run("subscriptions", "ack", "orders", "billing", "1:0", "--txn", "0:1")
        outcome = run("subscriptions", "seek", "orders", "billing", "earliest", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "object-held")
        assert outcome.error["details"]["transactions"] == ["0:1"]
        row = run("subscriptions", "seek", "orders", "billing", "earliest", "--force", "-o", "json").json
        assert not undeclared(row, seek.SOUGHT)
        assert row["transactionsAborted"] == ["0:1"]


@pytest.mark.usefixtures("billing")
class TestChange:
    """`evict`, `update`, `delete`."""

    def test_seek_says_what_it_withdraws(self, run: Any, store: Store) -> None:
        """From whom it is taken back, before and after."""
        with store.subscribe("orders", "billing", receiver_queue_size=3) as consumer:
            consumer.receive_batch(3, timeout=0)
            for words, told in ((("--dry-run",), "would be withdrawn"), ((), "were withdrawn")):
                out = run("subscriptions", "seek", "orders", "billing", "earliest", *words).out
                assert f"In flight {told}: 3 messages.\n" in out
