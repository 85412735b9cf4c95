"""Subscription: `txnctl/commands/consume/subscription.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.row_json import row_json
from tests.txnctl.commands.consume.consume_steps import backlog, send, send_batch

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestSubscriptions:
    """With -s."""

    def test_a_new_one_is_told_of_one_with_a_similar_name(self, run: Any, path: Path) -> None:
        """A slip of the hand makes a subscription, which nothing else would tell."""
        send(path, b"a")
        assert "should you mean" not in run("consume", "orders", "-s", "settle").err
        assert (
            "; there is settle too, should you mean that one" in run("consume", "orders", "-s", "settel").err
        )
        assert "should you mean" not in run("consume", "orders", "-s", "audit").err

    def test_a_missing_one_is_created_and_said(self, run: Any, path: Path) -> None:
        """At latest, unless --from says where; of the type and level asked for."""
        send(path, b"a")
        outcome = run("consume", "orders", "-s", "s")
        assert outcome.out == ""
        assert "created subscription s of orders at latest (Exclusive, READ_COMMITTED)" in outcome.err
        outcome = run(
            *("consume", "orders", "-s", "t", "--from", "earliest", "-o", "value"),
            *("--subscription-type", "Key_Shared", "--isolation-level", "read-uncommitted"),
        )
        assert outcome.out == "a\n"
        assert "at earliest (Key_Shared, READ_UNCOMMITTED)" in outcome.err
        send(path, b"b")
        outcome = run("consume", "orders", "-s", "s", "-o", "value")
        assert (outcome.out, outcome.err) == ("b\n", "")

    def test_from_does_not_move_one_that_is_there(self, run: Any, path: Path) -> None:
        """It is said what does."""
        run("consume", "orders", "-s", "s")
        send(path, b"a")
        outcome = run("consume", "orders", "-s", "s", "--from", "latest", "-o", "value")
        assert outcome.out == "a\n"
        assert "subscriptions seek orders s" in outcome.err

    def test_from_a_time(self, run: Any, path: Path) -> None:
        """As for a reader."""
        send(path, b"a")
        out = run("consume", "orders", "-s", "s", "--from", "@2020-01-01", "-o", "value").out
        assert out == "a\n"

    @pytest.mark.parametrize("kind", ["exclusive", "failover", "shared", "key-shared"])
    def test_each_type_hands_out_everything_once(self, run: Any, path: Path, kind: str) -> None:
        """-n takes so many, and leaves the others to the next."""
        send_batch(path, 2500)
        words = ("consume", "orders", "-s", "s", "--subscription-type", kind, "--from", "earliest")
        first = run(*words, "-n", "3", "-o", "value").out.split()
        assert first == ["0", "1", "2"]
        assert backlog(path) == 2497
        assert run(*words, "-o", "value").out.split() == [str(number) for number in range(3, 2500)]
        assert backlog(path) == 0
        assert run(*words, "-o", "value").out == ""

    def test_ack_none_leaves_everything(self, run: Any, path: Path) -> None:
        """It comes again."""
        send_batch(path, 5)
        for _ in range(2):
            out = run(
                *("consume", "orders", "-s", "s", "--from", "earliest", "--ack", "none", "-o", "value")
            ).out
            assert out.split() == list("01234")
        assert backlog(path) == 5

    def test_json_is_acknowledged_when_it_is_written(self, run: Any, path: Path) -> None:
        """All of it at the end."""
        send_batch(path, 2500)
        words = ("consume", "orders", "-s", "s", "--from", "earliest", "-o", "json")
        assert len(run(*words).json) == 2500
        assert backlog(path) == 0
        assert run(*words).json == []

    def test_acknowledgements_in_a_transaction(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Pending until it ends: released by an abort, done by a commit."""
        send_batch(path, 3)
        words = ("consume", "orders", "-s", "s", "--from", "earliest", "-o", "value")
        txn = run("transactions", "begin").out.strip()
        assert run(*words, "--txn", txn).out.split() == list("012")
        assert run(*words).out == ""
        run("transactions", "abort", txn)
        txn = run("transactions", "begin").out.strip()
        monkeypatch.setenv("TXNCTL_TXN", txn)
        assert run(*words).out.split() == list("012")
        run("transactions", "commit")
        monkeypatch.delenv("TXNCTL_TXN")
        assert run(*words).out == ""
        assert backlog(path) == 0

    def test_a_transaction_that_ended_takes_no_acknowledgement(self, run: Any, path: Path) -> None:
        """Exit 4, before anything is handed out."""
        send_batch(path, 3)
        run("subscriptions", "create", "orders", "s", "--from", "earliest")
        txn = run("transactions", "begin").out.strip()
        run("transactions", "commit", txn)
        outcome = run("consume", "orders", "-s", "s", "--from", "earliest", "--txn", txn, "-o", "ndjson")
        assert outcome.status == 4
        assert outcome.error["code"] == "transaction-not-open"
        assert outcome.out == ""
        assert backlog(path) == 3

    def test_an_open_transaction_is_named(self, run: Any, path: Path) -> None:
        """As for a reader."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            producer.send(b"a")
            producer.send(b"held", txn=store.begin_transaction())
            producer.send_batch([b"b", b"c"])
        outcome = run("consume", "orders", "-s", "s", "--from", "earliest", "-o", "value")
        assert outcome.out == "a\n"
        assert "2 committed messages wait behind open transaction 0:1, with 1 uncommitted" in outcome.err

    def test_an_attached_consumer_keeps_others_out(self, run: Any, path: Path) -> None:
        """Exclusive is exclusive, and who is there is named."""
        with Store.open(path) as store:
            consumer = store.subscribe("orders", "s", consumer_name="first")
            outcome = run("consume", "orders", "-s", "s", "-o", "ndjson")
            assert outcome.status == 4
            assert outcome.error["code"] == "subscription-busy"
            assert "first" in outcome.error["message"]
            consumer.close()

    def test_the_name_of_the_consumer(self, start: Any, path: Path) -> None:
        """As others see it."""
        process = start("consume", "orders", "-s", "s", "--consumer", "worker-7", "-f")
        assert process.stderr.readline().startswith(b"txnctl: created subscription")
        with Store.open(path, read_only=True) as store:
            consumers = row_json(store.reports.subscription_stats("orders", "s"))["consumers"]
        assert [consumer["consumerName"] for consumer in consumers] == ["worker-7"]

    def test_dead_letters(self, run: Any, path: Path) -> None:
        """What was handed out too often goes to the topic named."""
        send(path, b"poison")
        words = ("consume", "orders", "-s", "s", "--from", "earliest", "--subscription-type", "shared")
        words += ("--max-redeliver-count", "1", "--dead-letter-topic", "letters", "--ack", "none")
        assert [len(run(*words).rows) for _ in range(3)] == [1, 1, 0]
        assert run("consume", "letters", "-o", "value").out == "poison\n"
