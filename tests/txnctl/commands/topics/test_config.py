"""`txnctl topics config`, `trim` and `truncate`: retention from the command line."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from txnctl.cli.declaration import declaration_of
from txnctl.commands.topics import config, trim, truncate
from txnctl.output.field import Field, undeclared

pytestmark = pytest.mark.usefixtures("path")


@pytest.fixture
def orders(run: Any) -> str:
    """A topic with ledgers of one entry and three messages, of which `billing` has acknowledged two."""
    run("topics", "create", "orders", "--ledger-entries", "1")
    run("subscriptions", "create", "orders", "billing", "--from", "earliest")
    for text in ("one", "two", "three"):
        run("produce", "orders", "-m", text)
    run("subscriptions", "skip", "orders", "billing", "2", "--yes")
    return "orders"


def declared(command: Any) -> Iterable[Field]:
    """The fields that a command declares."""
    output = declaration_of(command).output
    assert output is not None
    return output.fields


class TestConfig:
    """`topics config`."""

    def test_everything_is_kept_unless_a_limit_is_set(self, run: Any, orders: str) -> None:
        row = run("topics", "config", orders, "-o", "json").json
        assert (row["retentionTimeMs"], row["retentionBytes"]) == (None, None)
        assert run("topics", "config", orders).out.endswith("Every message is kept.\n")

    def test_a_limit_of_the_topic_stands_before_the_limit_of_the_store(self, run: Any, orders: str) -> None:
        run("store", "config", "retention-time", "7d")
        run("store", "config", "retention-size", "1G")
        row = run("topics", "config", orders, "--retention-time", "unset", "-o", "json").json
        assert not undeclared(row, declared(config.config))
        assert (row["retentionTimeMs"], row["ownRetentionTime"]) == (None, True)
        assert (row["retentionBytes"], row["ownRetentionSize"]) == (1 << 30, False)
        back = run("topics", "config", orders, "--retention-time", "store", "-o", "json").json
        assert (back["retentionTimeMs"], back["ownRetentionTime"]) == (7 * 86_400_000, False)

    @pytest.mark.parametrize("value", ["7", "-1d", "for ever", "99999999d"])
    def test_an_unreadable_limit_is_refused(self, run: Any, orders: str, value: str) -> None:
        outcome = run("topics", "config", orders, f"--retention-time={value}")
        assert outcome.status == 2
        assert "unset" in outcome.err

    def test_it_says_that_readers_hold_nothing_back(self, run: Any, orders: str) -> None:
        out = run("topics", "config", orders, "--retention-size", "10G").out
        assert "Readers without a subscription hold nothing back." in out

    def test_a_dead_letter_topic_names_the_limits_of_dead_letters(
        self, run: Any, orders: str, path: Path
    ) -> None:
        """The limits of the store for the rest leave it alone, and `store space` offers no quiet way to empty it."""
        run("store", "config", "retention-time", "0")
        with Store.open(path) as store, store.subscribe(orders, "billing", max_redeliver_count=0) as consumer:
            consumer.negative_acknowledge(consumer.receive(timeout=1), delay=0)
            assert list(consumer.receive_batch(1, timeout=0)) == []
        letters = f"{orders}-billing-DLQ"
        assert run("topics", "show", letters, "-o", "json").json["msgCount"] > 0
        out = run("topics", "config", letters).out
        assert "retention time  no limit, as the store has it for dead letters" in out
        rows = run("store", "space", "--freeable", "-o", "json").json
        assert [row["command"] for row in rows if row["name"] == letters] == [
            f"txnctl topics truncate {letters}"
        ]

    @pytest.mark.parametrize(
        ("words", "said", "unsaid"),
        [
            (("--retention-time", "7d"), ("retention time  7d", "before: no limit"), ("ttl", "compaction")),
            (("--ttl", "1d"), ("ttl             1d",), ("retention", "is kept", "compaction")),
            (
                ("--tombstone-retention", "2d"),
                ("compaction      by hand, tombstones stay 2d00h",),
                ("retention",),
            ),
            (("--tombstone-retention", "0"), ("tombstones go with the next compaction",), ("ttl",)),
            (("--compaction-threshold", "1M"), ("at 1.0 MiB, tombstones stay 1d00h",), ("ttl", "Every")),
        ],
    )
    def test_a_change_shows_what_was_changed(
        self, run: Any, orders: str, words: tuple[str, ...], said: tuple[str, ...], unsaid: tuple[str, ...]
    ) -> None:
        """And no other limit; JSON has all of them."""
        out = run("topics", "config", orders, *words).out
        assert all(part in out for part in said)
        assert not any(part in out for part in unsaid)
        assert {"ttlMs", "retentionTimeMs", "tombstoneRetentionMs"} <= set(
            run("topics", "config", orders, *words, "-o", "json").json
        )

    def test_all_limits_are_shown_where_none_is_named(self, run: Any, orders: str) -> None:
        """Compaction where the topic has some."""
        assert "compaction" not in run("topics", "config", orders).out
        run("topics", "config", orders, "--tombstone-retention", "0")
        out = run("topics", "config", orders).out
        for part in (
            "retention time",
            "retention size",
            "retention hard",
            "ttl",
            "expire after",
            "compaction",
        ):
            assert f"  {part}" in out

    @pytest.mark.parametrize("option", ["--ttl", "--expire-after"])
    def test_bounds_are_durations(self, run: Any, orders: str, option: str) -> None:
        """As they are typed, in place of milliseconds."""
        assert (
            "is 1s to 36600d, or unset or store, not 5ms"
            in run("topics", "config", orders, option, "5ms").err
        )

    def test_a_dry_run_changes_nothing(self, run: Any, orders: str) -> None:
        run("topics", "config", orders, "--retention-time", "1d", "--dry-run")
        assert run("topics", "config", orders, "-o", "json").json["retentionTimeMs"] is None


class TestTrim:
    """`topics trim`."""

    def test_it_names_the_subscription_that_holds_messages_back(self, run: Any, orders: str) -> None:
        """In dry run and run the same numbers; the record has the reason."""
        run("topics", "config", orders, "--retention-time", "0")
        dry = run("topics", "trim", orders, "--dry-run", "-o", "json").json
        row = run("topics", "trim", orders, "--reason", "the disk is full", "-o", "json").json
        assert {**dry, "dryRun": False} == row
        assert not undeclared(row, declared(trim.trim))
        assert (row["ledgers"], row["messages"], row["firstPosition"]) == (2, 2, "3:0")
        assert (row["heldBy"]["kind"], row["heldBy"]["name"]) == ("subscription", "billing")
        assert run("audit", "list", "-o", "json").json[0]["reason"] == "the disk is full"
        shown = run("topics", "show", orders, "-o", "json").json
        assert shown["heldBy"] == "subscription billing"
        assert "Held back by subscription billing" in run("topics", "trim", orders).out

    def test_offloaded_ledgers_go_whatever_the_limit(self, run: Any, orders: str, tmp_path: Path) -> None:
        """In dry run and run the same; the audit trail has the address, and what is held stays."""
        place = str(tmp_path / "off")
        (tmp_path / "off").mkdir()
        nothing = run("topics", "trim", orders, "--offloaded", place, "-o", "json").json
        assert (nothing["ledgers"], nothing["firstPosition"]) == (0, "1:0")
        run("pipeline", "offload", orders, place)
        dry = run("topics", "trim", orders, "--offloaded", place, "--dry-run", "-o", "json").json
        row = run("topics", "trim", orders, "--offloaded", place, "--reason", "cold", "-o", "json").json
        assert {**dry, "dryRun": False} == row
        assert not undeclared(row, declared(trim.trim))
        assert (row["messages"], row["firstPosition"], row["heldBy"]["name"]) == (2, "3:0", "billing")
        assert run("audit", "list", "-o", "json").json[0]["reason"] == "cold"
        out = run("topics", "trim", orders, "--offloaded", place).out
        assert f"Offloaded ledgers are in {row['offloadedTo']}." in out
        next((tmp_path / "off").rglob("*.json")).write_text("{")
        assert run("topics", "trim", orders, "--offloaded", place).status != 0

    def test_a_directory_that_is_not_there_is_an_error(self, run: Any, orders: str, tmp_path: Path) -> None:
        """Mistyped, it would else pass for one without files."""
        outcome = run("topics", "trim", orders, "--offloaded", str(tmp_path / "none"))
        assert outcome.status == 6
        assert f"{tmp_path}/none does not exist" in outcome.err

    def test_without_a_limit_it_says_how_to_set_one(self, run: Any, orders: str) -> None:
        assert f"txnctl topics config {orders} --retention-time 7d" in run("topics", "trim", orders).out

    def test_a_start_at_a_trimmed_position_is_refused(self, run: Any, orders: str) -> None:
        """With the first position that is left."""
        run("topics", "config", orders, "--retention-time", "0")
        run("topics", "trim", orders)
        outcome = run("topics", "peek", orders, "--from", "1:0")
        assert outcome.status == 3
        assert "trimmed; the first one left is at 3:0" in outcome.err
        assert run("topics", "peek", orders, "-o", "value").out == "three\n"

    @pytest.mark.parametrize(
        "words",
        [("create", "orders", "late", "--from", "1:0"), ("seek", "orders", "billing", "1:0", "--yes")],
    )
    def test_a_subscription_at_a_trimmed_position_is_told_where_it_begins(
        self, run: Any, orders: str, words: tuple[str, ...]
    ) -> None:
        run("topics", "config", orders, "--retention-time", "0")
        run("topics", "trim", orders)
        outcome = run("subscriptions", *words)
        assert outcome.status == 0
        assert (
            "1:0 lies before the first position of orders, and is taken as that: just after 3:-1"
            in outcome.err
        )


class TestTruncate:
    """`topics truncate`."""

    def test_without_a_terminal_it_needs_yes(self, run: Any, orders: str) -> None:
        assert run("topics", "truncate", orders).status == 9
        assert run("topics", "show", orders, "-o", "json").json["msgCount"] == 3

    def test_it_removes_everything_and_goes_on_counting(self, run: Any, orders: str) -> None:
        row = run("topics", "truncate", orders, "--yes", "-o", "json").json
        assert not undeclared(row, declared(truncate.truncate))
        assert (row["messages"], row["subscriptions"], row["firstPosition"]) == (3, ["billing"], "4:0")
        run("produce", orders, "-m", "four")
        assert run("consume", orders, "-s", "billing", "-n", "1", "-o", "value").out == "four\n"

    def test_it_is_refused_while_a_transaction_holds_messages(self, run: Any, orders: str) -> None:
        run("transactions", "begin")
        run("produce", orders, "-m", "held", "--txn", "0:1")
        assert run("topics", "truncate", orders, "--yes").status == 4
        row = run("topics", "truncate", orders, "--yes", "--force", "-o", "json").json
        assert row["transactionsAborted"] == ["0:1"]


class TestStoreGc:
    """`store gc` trims every topic."""

    def test_gc_trims_topics_past_their_retention(self, run: Any, orders: str) -> None:
        run("store", "config", "retention-time", "0")
        dry = run("store", "gc", "--dry-run", "-o", "json").json
        assert (dry["ledgersTrimmed"], dry["messagesTrimmed"]) == (2, 2)
