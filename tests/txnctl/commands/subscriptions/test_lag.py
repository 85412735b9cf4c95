"""`txnctl subscriptions lag`."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from storage.limits import QUIET_CONSUMER_MS
from storage.values.key_text import key_text
from tests.txnctl.commands.subscriptions.subscriptions_steps import lag
from tests.waiting import wait_for
from txnctl.commands.subscriptions import (
    lag as subscription_lag,
)
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestCreateAndList:
    """`create`, `list`, `show`, `stats`."""

    @pytest.mark.usefixtures("billing")
    @pytest.mark.parametrize("command", ["show", "stats"])
    def test_without_a_subscription_the_topic_is_looked_at(self, run: Any, command: str) -> None:
        """A topic that is not there is said to be missing, with those near; of one that is, what it has."""
        outcome = run("subscriptions", command, "order")
        assert (outcome.status, outcome.err) == (3, run("subscriptions", "lag", "order").err)
        assert "Did you mean orders?" in outcome.err
        outcome = run("subscriptions", command, "orders")
        assert outcome.status == 2
        assert "error: missing argument 'SUBSCRIPTION': orders has billing\n" in outcome.err
        assert outcome.err.endswith(f"For example: txnctl subscriptions {command} orders billing\n")


class TestLag:
    """`subscriptions lag`: is it slow, or blocked, and by whom?"""

    @pytest.mark.usefixtures("billing")
    def test_without_a_topic_all_are_listed(self, run: Any) -> None:
        """A section for each topic that has subscriptions; the rows are those of the topics by themselves."""
        for topic in ("empty", "payments"):
            run("topics", "create", topic)
        run("subscriptions", "create", "payments", "audit", "--from", "earliest")
        run("produce", "payments", "-m", "x")
        rows = run("subscriptions", "lag", "-o", "json").json
        assert [row["subscription"] for row in rows] == ["billing", "audit"]
        out = run("subscriptions", "lag").out
        assert [line.split()[0] for line in out.splitlines() if "maxReadPosition" in line] == [
            "orders",
            "payments",
        ]
        assert "audit: nobody is attached; 1 message could be read now." in out
        assert run("subscriptions", "lag", "--exit-code").status == 8

    def test_no_subscription_at_all(self, run: Any) -> None:
        """Success, and said."""
        outcome = run("subscriptions", "lag")
        assert (outcome.status, outcome.out) == (0, "")
        assert "there are no subscriptions" in outcome.err

    def test_delayed_messages_are_a_class_of_their_own(self, run: Any, store: Store) -> None:
        """Counted apart once dispatch has come to them; nothing is wrong with a subscription that waits."""
        with store.subscribe("orders", "late", subscription_type="Shared") as consumer:
            store.create_producer("orders").send_batch([b"a", b"b"], deliver_after=3600)
            assert list(consumer.receive_batch(9, timeout=0)) == []
            row = lag(run, "late")
            assert (row["delayed"], row["visible"], row["msgBacklog"], row["verdict"]) == (2, 0, 2, "ok")
            table = run("subscriptions", "lag", "orders", "late", "-o", "table").out.splitlines()
            heading = next(line for line in table if "DELAYED" in line)
            assert "DELAYED" in heading
            assert "2   until their delivery time" in run("subscriptions", "stats", "orders", "late").out

    @pytest.mark.usefixtures("billing")
    def test_every_verdict(self, run: Any, store: Store) -> None:
        """ok, behind, blocked, mixed, no-consumer; and --exit-code tells."""
        producer = store.create_producer("orders")
        row = lag(run)
        assert not undeclared(row, subscription_lag.LAG)
        assert (row["verdict"], row["visible"]) == ("no-consumer", 5)
        with store.subscribe("orders", "billing") as consumer:
            assert lag(run)["verdict"] == "behind"
            txn = store.begin_transaction(labels={"job": "x"})
            producer.send(b"open", txn=txn)
            producer.send(b"after")
            row = lag(run)
            assert (row["verdict"], row["visible"], row["blocked"], row["uncommitted"]) == ("mixed", 5, 1, 1)
            consumer.acknowledge(consumer.receive_batch(5, timeout=0))
            row = lag(run)
            assert (row["verdict"], row["visible"], row["blocked"], row["uncommitted"]) == (
                "blocked",
                0,
                1,
                1,
            )
            assert row["blockedBy"]["txnId"] == str(txn)
            assert run("subscriptions", "lag", "orders", "--exit-code").status == 8
            out = run("subscriptions", "lag", "orders", "billing").out
            assert f"billing waits behind transaction {txn}: open for " in out
            assert f"detached, begun by {row['blockedBy']['owner']}, last used by process" in out
            assert ", this process; it holds everything from 1:5 on." in " ".join(out.split())
            assert out.endswith(f"Next: txnctl transactions explain {txn}\n")
            store.admin.transactions.abort_transaction(txn)
            consumer.acknowledge(consumer.receive_batch(5, timeout=0))
            row = lag(run)
            assert (row["verdict"], row["visible"], row["blocked"], row["blockedBy"]) == ("ok", 0, 0, None)
            assert run("subscriptions", "lag", "orders", "--exit-code").status == 0

    @pytest.mark.usefixtures("billing")
    def test_a_stopped_consumer_is_not_called_slow(
        self, run: Any, store: Store, path: Path, consuming: Callable[..., subprocess.Popen[str]]
    ) -> None:
        """It is named with what it holds, which nobody could read now, and with the two ways out."""
        process = consuming("worker-7", 3)
        with store.subscribe("orders", "billing", consumer_name="anna") as consumer:
            consumer.receive_batch(1, timeout=0)
            out = run("subscriptions", "lag", "orders").out
            held = {each["consumerName"]: each["unackedMessages"] for each in lag(run)["consumers"]}
            assert "3 in flight at worker-7" in out
            assert held["worker-7"] == 3
            assert sum(held.values()) == lag(run)["unackedMessages"]
        process.send_signal(signal.SIGSTOP)
        wait_for(lambda: lag(run)["consumers"][0]["state"] == "stopped", "it is called stopped")
        out = run("subscriptions", "lag", "orders", "billing").out
        evict = "txnctl subscriptions evict orders billing worker-7"
        assert f"billing: worker-7 is stopped and holds 3 in flight, which `{evict}` gives to others" in out
        assert "2 messages could be read now" in out
        assert "slow" not in out
        assert lag(run)["verdict"] == "stopped"
        assert f"{' ' * 2}stopped\n" in run("subscriptions", "list").out
        assert "1 stopped" in run("status").out
        with store.subscribe("orders", "billing", consumer_name="ben") as consumer:
            assert lag(run)["verdict"] == "behind", "another consumer may have the two that are ready"
            while messages := consumer.receive_batch(2, timeout=0):
                consumer.acknowledge(messages)
            assert lag(run)["verdict"] == "stopped", "all that is visible is at the stopped one"
        assert out.endswith(f"Next: kill -CONT {process.pid}\n")
        assert run(*evict.split()[1:]).status == 0
        assert (
            "billing: nobody is attached; 3 messages could be read now."
            in run("subscriptions", "lag", "orders").out
        )

    @pytest.mark.usefixtures("billing")
    def test_when_all_is_in_flight_evict_is_named(self, run: Any, store: Store) -> None:
        """Nothing is ready, so only the consumer that holds it, or its eviction, moves anything."""
        way = "if nothing moves, `txnctl subscriptions evict orders billing anna` gives what it holds to others."
        with store.subscribe("orders", "billing", consumer_name="anna") as consumer:
            consumer.receive_batch(5, timeout=0)
            row = lag(run)
            assert row["visible"] == row["unackedMessages"] == 5
            assert f"billing: 5 in flight at anna; {way}\n" in run("subs", "lag", "orders", "billing").out
            store.create_producer("orders").send(b"one more")
            assert lag(run)["visible"] == 6
            assert "evict" not in run("subs", "lag", "orders", "billing").out

    def test_messages_of_one_key_are_looked_at_before_they_go_on(self, run: Any, store: Store) -> None:
        """A consumer that sticks at a key is not evicted for the next one to stick there too."""
        store.create_topic("keyed")
        with store.subscribe(
            "keyed", "s", subscription_type=SubscriptionType.KEY_SHARED, initial_position=EARLIEST
        ) as consumer:
            store.create_producer("keyed").send_batch([b"m"] * 200, keys=["it's k"] * 200)
            consumer.receive(timeout=0)
            connection = store.connection
            long_ago_ns = connection.clock.boot_ns() - 2 * QUIET_CONSUMER_MS * 1_000_000
            connection.environment.received_marks.note_quiet(consumer._attachment.consumer_id, long_ago_ns)
            out = run("subscriptions", "lag", "keyed", "s").out
            assert "200 messages, all of key it's k in flight at " in " ".join(out.split())
            assert "all of one key, at which the next worker may stick too: " in out
            assert "evict" not in out
            look = "txnctl topics peek keyed --subscription s --key 'it'\"'\"'s k'"
            assert f"`{look}` shows the messages" in " ".join(out.split())
            assert len(run(*shlex.split(look)[1:], "-n", "9", "-o", "name").out.split()) == 9
            found = " ".join(run("doctor").out.split())
            assert "holds 200 messages, all of key it's k, and has acknowledged none" in found
            assert look in found
            assert run("subscriptions", "ack", "keyed", "s", "1:0:0").status == 0
            assert run("subscriptions", "update", "keyed", "s", "--max-redeliver-count", "3").status == 0

    @pytest.mark.parametrize("key", [b"bad", b"\xff\xfe", b"a\tb", rb"a\tb", b"-n"])
    def test_one_stuck_key_is_named_by_lag_and_by_evict(self, run: Any, store: Store, key: bytes) -> None:
        """All that waits is of the key that one consumer sticks at: none could be read now, and the printed look runs."""
        store.create_topic("keyed")
        with store.subscribe(
            "keyed", "s", subscription_type=SubscriptionType.KEY_SHARED, initial_position=EARLIEST,
            receiver_queue_size=1, consumer_name="worker",
        ) as consumer:  # fmt: skip
            store.create_producer("keyed").send_batch([b"m"] * 200, keys=[key] * 200)
            consumer.receive(timeout=0)
            long_ago_ns = store.connection.clock.boot_ns() - 2 * QUIET_CONSUMER_MS * 1_000_000
            marks = store.connection.environment.received_marks
            marks.note_quiet(consumer._attachment.consumer_id, long_ago_ns)
            shown = f"1 of the 200 messages of key {key_text(key)}"
            lag_text = " ".join(run("subscriptions", "lag", "keyed", "s").out.split())
            assert f"s: {shown} in flight at worker, which has acknowledged none for 2m" in lag_text
            assert "could be read now" not in lag_text
            assert "consumers are slow" not in lag_text
            (look,) = re.findall("`(txnctl topics peek .*)` shows the messages", lag_text)
            assert len(run(*shlex.split(look)[1:], "-n", "9", "-o", "name").out.split()) == 9
            for words in (("--dry-run",), ("worker",)):
                told = " ".join(run("subscriptions", "evict", "keyed", "s", *words).out.split())
                assert f"consumer worker (pid {os.getpid()} on " in told
                assert f"holds {shown} and has acknowledged none for 2m" in told
                assert told.endswith(f"Next: {look}")
                assert "first and may stick at it too" in told
                assert "Run: " not in told

    @pytest.mark.usefixtures("billing")
    def test_a_topic_is_an_array_a_subscription_an_object(self, run: Any, store: Store) -> None:
        """The same facts, and those of `stats`."""
        store.admin.subscriptions.create_subscription(
            "orders", "monitor", subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED
        )
        txn = store.begin_transaction()
        store.create_producer("orders").send(b"open", txn=txn)
        rows = run("subscriptions", "lag", "orders", "-o", "json").json
        assert [row["subscription"] for row in rows] == ["billing", "monitor"]
        moving = {"asOfAt", "asOfMs", "blockedBy"}
        for row in rows:
            alone = lag(run, row["subscription"])
            assert not undeclared(row, subscription_lag.LAG)
            assert {k: v for k, v in row.items() if k not in moving} == {
                k: v for k, v in alone.items() if k not in moving
            }
        assert [row["visible"] for row in rows] == [5, 1]
        assert run("subscriptions", "lag", "orders", "-o", "name").out == "billing\nmonitor\n"

    def test_what_does_not_exist(self, run: Any) -> None:
        """Exit 3; a topic without subscriptions is success."""
        assert run("subscriptions", "lag", "nowhere").status == 3
        assert run("subscriptions", "lag", "orders", "nobody").status == 3
        assert run("subscriptions", "lag", "orders", "-o", "json").json == []


@pytest.mark.usefixtures("billing")
class TestAcknowledge:
    """`ack`, `nack`, `pending`."""

    def test_lag_names_the_transaction_of_what_is_pending(self, run: Any) -> None:
        """The one in which most is acknowledged, one by one or up to a message, until it ends."""
        run("subscriptions", "update", "orders", "billing", "--subscription-type", "exclusive")
        for _ in range(3):
            run("transactions", "begin")
        run("subscriptions", "ack", "orders", "billing", "1:4", "--txn", "0:1")
        out = run("subscriptions", "lag", "orders", "billing").out
        assert "billing: 1 is acknowledged in transaction 0:1, which is open.\n" in out
        assert out.endswith("Next: txnctl transactions explain 0:1\n")
        run("subscriptions", "ack", "orders", "billing", "1:2", "--cumulative", "--txn", "0:3")
        row = lag(run)
        assert row["pendingIn"] == [{"txnId": "0:1", "messages": 1}, {"txnId": "0:3", "messages": 3}]
        assert row["pending"] == 4
        out = run("subscriptions", "lag", "orders").out
        assert "billing: 3 of 4 pending are acknowledged in transaction 0:3, which is open.\n" in out
        assert out.endswith("Next: txnctl transactions explain 0:3\n")
        run("transactions", "commit", "0:3")
        run("transactions", "abort", "0:1")
        assert lag(run)["pendingIn"] == []
        assert "acknowledged in transaction" not in run("subscriptions", "lag", "orders").out
