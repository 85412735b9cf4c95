"""`txnctl subscriptions update`."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.subscriptions.subscriptions_steps import lag
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


@pytest.mark.usefixtures("billing")
class TestChange:
    """`evict`, `update`, `delete`."""

    def test_a_stopped_consumer_keeps_an_exclusive_one(
        self, run: Any, store: Store, consuming: Callable[..., subprocess.Popen[str]]
    ) -> None:
        """Who comes is told that it is stopped, and the two ways in."""
        run("subscriptions", "update", "orders", "billing", "--subscription-type", "exclusive")
        process = consuming("worker-7", 1)
        words = ("consume", "orders", "-s", "billing", "-n", "1", "-o", "json")
        assert run(*words).error["hint"].startswith("Wait until it is closed")
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: lag(run)["consumers"][0]["state"] == "stopped", "it is called stopped")
        error = run(*words).error
        assert error["message"].endswith("is attached, and stopped")
        assert error["hint"].startswith(
            f"kill -CONT {process.pid} lets it go on; `txnctl subscriptions evict "
        )
        assert run(*error["hint"].split("`")[1].split()[1:]).status == 0

    def test_update_says_that_a_seek_is_needed(self, run: Any) -> None:
        """On standard error, at a change of level only."""
        outcome = run("subscriptions", "update", "orders", "billing", "--isolation-level", "READ_UNCOMMITTED")
        assert outcome.out == (
            "Changed billing on orders: subscriptionIsolationLevel READ_COMMITTED -> READ_UNCOMMITTED.\n"
        )
        assert "skipped stay skipped; to see them again a seek is needed" in outcome.err
        assert "txnctl subscriptions seek orders billing POSITION" in outcome.err
        outcome = run("subscriptions", "update", "orders", "billing", "--isolation-level", "read-committed")
        assert "acknowledged while they were uncommitted stay acknowledged" in outcome.err
        outcome = run("subscriptions", "update", "orders", "billing", "--subscription-type", "failover")
        assert (outcome.status, outcome.err) == (0, "")
        outcome = run(
            "subscriptions", "update", "orders", "billing", "--subscription-type", "failover", "-o", "json"
        )
        assert outcome.json["changes"] == []
        assert run("subscriptions", "update", "orders", "billing").status == 2

    def test_neither_level_nor_type_changes_under_a_consumer(self, run: Any, store: Store) -> None:
        """Exit 4, naming who is attached."""
        with store.subscribe("orders", "billing", consumer_name="anna"):
            for words in (("--isolation-level", "read-uncommitted"), ("--subscription-type", "exclusive")):
                outcome = run("subscriptions", "update", "orders", "billing", *words, "-o", "json")
                assert (outcome.status, outcome.error["code"]) == (4, "subscription-busy")
                assert "anna" in outcome.error["message"]
