"""`txnctl topics config`, `trim`, `show`, `log` and `store config`: limits that let go of what is not acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from txnctl.cli.declaration import declaration_of
from txnctl.commands.store import config as store_config, gc
from txnctl.commands.topics import config, show, trim
from txnctl.output.field import Field, undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def orders(run: Any) -> str:
    """A topic with ledgers of one entry and four messages, of which `billing` has acknowledged one."""
    run("topics", "create", "orders", "--ledger-entries", "1")
    run("subscriptions", "create", "orders", "billing", "--from", "earliest")
    for text in ("one", "two", "three", "four"):
        run("produce", "orders", "-m", text)
    run("subscriptions", "skip", "orders", "billing", "1", "--yes")
    return "orders"


def declared(command: Any) -> Iterable[Field]:
    """The fields that a command declares."""
    output = declaration_of(command).output
    assert output is not None
    return output.fields


class TestHard:
    """`--retention-hard`."""

    def test_a_dry_run_says_what_each_subscription_would_lose(self, run: Any, orders: str) -> None:
        """Before the limit is set, and before a run; the run says the same, and the statistics count it."""
        words = ("topics", "config", orders, "--retention-size", "150", "--retention-hard")
        plan = run(*words, "--dry-run").out
        assert "They would let go of 2 ledgers now: 2 messages" in plan
        assert "1 message not acknowledged by a subscription, and lost to it" in plan
        row = run(*words, "trim", "-o", "json").json
        assert not undeclared(row, declared(config.config))
        assert (row["retentionHard"], row["before"]["hard"], row["letsGo"]["messagesLost"]) == (
            "trim",
            None,
            1,
        )
        dry = run("topics", "trim", orders, "--dry-run", "-o", "json").json
        assert dry["lost"] == [{"subscription": "billing", "messages": 1}]
        assert "subscription billing loses 1 message" in run("topics", "trim", orders, "--dry-run").out
        gone = run("topics", "trim", orders, "-o", "json").json
        assert {**dry, "dryRun": False} == gone
        assert not undeclared(gone, declared(trim.trim))
        shown = run("subscriptions", "show", orders, "billing", "-o", "json").json
        assert (shown["msgLostCounter"], shown["visible"]) == (1, 2)
        lines = run("subscriptions", "show", orders, "billing").out
        assert "lost         1 message to hard retention" in lines
        assert "no consumer  since 20" in lines
        assert any(row["action"] == "messages lost" for row in run("audit", "list", "-o", "json").json)

    def test_a_dry_run_names_the_transaction_that_it_would_abort(self, run: Any, orders: str) -> None:
        run("transactions", "begin")
        run("consume", orders, "-s", "billing", "-n", "1", "--txn", "0:1")
        run("topics", "config", orders, "--retention-size", "150", "--retention-hard", "trim")
        assert "aborts transaction 0:1" in run("topics", "trim", orders, "--dry-run").out
        assert run("topics", "trim", orders, "-o", "json").json["transactionsAborted"] == ["0:1"]
        ended = run("transactions", "history", "--reason", "retention", "-o", "json").json
        assert [row["txnId"] for row in ended] == ["0:1"]

    def test_producers_are_refused_instead(self, run: Any, orders: str) -> None:
        run("topics", "config", orders, "--retention-size", "150", "--retention-hard", "refuse")
        outcome = run("produce", orders, "-m", "five", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "topic-full")
        assert "subscription billing keeps" in outcome.error["message"]
        run("subscriptions", "clear-backlog", orders, "billing", "--yes")
        assert run("produce", orders, "-m", "five").status == 0

    def test_it_has_a_default_in_the_store(self, run: Any, orders: str) -> None:
        row = run("store", "config", "retention-hard", "trim", "-o", "json").json
        assert not undeclared(row, store_config.SETTINGS)
        assert (row["before"], row["value"]) == ("off", "trim")
        assert run("topics", "config", orders, "-o", "json").json["retentionHard"] == "trim"
        own = run("topics", "config", orders, "--retention-hard", "off", "-o", "json").json
        assert (own["retentionHard"], own["ownRetentionHard"]) == ("off", True)
        back = run("topics", "config", orders, "--retention-hard", "store", "-o", "json").json
        assert (back["retentionHard"], back["ownRetentionHard"]) == ("trim", False)

    def test_another_word_is_refused(self, run: Any, orders: str) -> None:
        outcome = run("topics", "config", orders, "--retention-hard", "always")
        assert (outcome.status, "off or trim or refuse or store" in outcome.err) == (2, True)


class TestLives:
    """`--ttl` and `--expire-after`."""

    def test_both_are_limits_of_topic_and_store(self, run: Any, orders: str) -> None:
        run("store", "config", "ttl", "30d")
        row = run("topics", "config", orders, "--expire-after", "14d", "-o", "json").json
        assert (row["ttlMs"], row["ownTtl"]) == (30 * 86_400_000, False)
        assert (row["expireAfterMs"], row["ownExpireAfter"]) == (14 * 86_400_000, True)
        settings = {row["name"]: row["value"] for row in run("store", "config", "-o", "json").json}
        assert (settings["ttl"], settings["expire-after"]) == ("30d", "unset")

    def test_gc_counts_them(self, run: Any, orders: str) -> None:
        run("topics", "config", orders, "--ttl", "1s", "--expire-after", "1000d")
        row = run("store", "gc", "--dry-run", "-o", "json").json
        assert not undeclared(row, gc.COLLECTED)
        assert (row["messagesExpired"], row["subscriptionsExpired"]) in ((0, 0), (3, 0))

    def test_a_time_to_live_of_0_is_refused(self, run: Any, orders: str) -> None:
        assert run("topics", "config", orders, "--ttl", "0").status == 2


class TestWords:
    """Limits and their effects in words."""

    def test_a_change_shows_the_limit_before_and_what_goes(self, run: Any, orders: str) -> None:
        run("topics", "config", orders, "--retention-time", "7d")
        out = run("topics", "config", orders, "--retention-time", "0", "--dry-run").out
        assert "retention time  0: nothing is kept once acknowledged, set for this topic" in out
        assert "before: 7d00h" in out
        assert "They would let go of 1 ledger now: 1 message" in out
        assert "retention time     7d00h" in run("topics", "show", orders).out
        run("topics", "config", orders, "--retention-time", "0")
        assert "retention time     0: nothing is kept once acknowledged" in run("topics", "show", orders).out

    def test_a_setting_of_the_store_says_what_goes(self, run: Any, orders: str) -> None:
        """Of every topic; the record names the value."""
        out = run("store", "config", "retention-time", "0").out
        assert out.startswith("retention-time: unset -> 0 (nothing is kept once acknowledged)\n")
        assert "They let go of 1 ledger now: 1 message" in out
        assert run("audit", "list", "-o", "json").json[0]["target"] == "retention-time 0 ms"
        run("store", "config", "reap-policy", "manual")
        assert run("audit", "list", "-o", "json").json[0]["target"] == "reap-policy manual"

    def test_the_hold_of_a_subscription_without_a_consumer_names_the_way_out(
        self, run: Any, orders: str
    ) -> None:
        row = run("topics", "show", orders, "-o", "json").json
        assert not undeclared(row, show.SHOWN)
        assert row["heldBy"] == "subscription billing"
        assert row["letsGoWith"] == f"txnctl subscriptions delete {orders} billing"
        assert row["heldWithoutConsumerSinceMs"] > 0

    def test_a_range_that_was_trimmed_is_told_from_one_that_never_was(self, run: Any, orders: str) -> None:
        run("topics", "config", orders, "--retention-time", "0")
        run("topics", "trim", orders)
        outcome = run("topics", "log", orders, "--range", "..1:5")
        assert outcome.status == 3
        assert "trimmed; the first one left is at 2:0" in outcome.err
        assert run("topics", "log", orders, "--range", "..2:0", "-o", "json").json[0]["position"] == "2:0"
