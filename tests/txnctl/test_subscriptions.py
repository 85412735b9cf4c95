"""`txnctl subscriptions`: every command, in every format, and what it does to the store."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType
from tests.row_json import row_json
from tests.txnctl.processes import wait_for
from txnctl.commands.subscriptions import (
    ack,
    create,
    cursor_move,
    delete,
    evict,
    lag as subscription_lag,
    nack,
    pending,
    seek,
    update,
)
from txnctl.fields.subscription import ROW, STATS
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")
TOPICS = ("orders",)

FULL = "persistent://public/default/orders"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """The same, open."""
    with Store.open(path) as opened:
        yield opened


@pytest.fixture
def billing(store: Store) -> None:
    """`billing`, Shared, from the beginning of five messages 1:0 to 1:4."""
    store.admin.subscriptions.create_subscription(
        "orders", "billing", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
    )
    producer = store.create_producer("orders")
    for number in range(5):
        producer.send(b"%d" % number)


def lag(run: Any, subscription: str = "billing") -> dict[str, Any]:
    """Its row of `subscriptions lag`."""
    row: dict[str, Any] = run("subscriptions", "lag", "orders", subscription, "-o", "json").json
    return row


class TestCreateAndList:
    """`create`, `list`, `show`, `stats`."""

    def test_defaults(self, run: Any) -> None:
        """Exclusive, READ_COMMITTED, from the end, nobody attached."""
        outcome = run("subscriptions", "create", "orders", "billing")
        assert outcome.out == (
            "Created subscription billing on orders (Exclusive, READ_COMMITTED); its backlog begins after 1:-1.\n"
        )
        row = run("subscriptions", "show", "orders", "billing", "-o", "json").json
        assert not undeclared(row, STATS)
        assert (row["topic"], row["subscription"]) == (FULL, "billing")
        assert (row["type"], row["subscriptionIsolationLevel"]) == ("Exclusive", "READ_COMMITTED")
        assert (row["consumers"], row["deadLetterTopic"], row["maxRedeliverCount"]) == ([], None, None)

    @pytest.mark.parametrize("level", ["READ_UNCOMMITTED", "read-uncommitted", "read_uncommitted"])
    @pytest.mark.parametrize("kind", ["KEY_SHARED", "Key_Shared", "key-shared"])
    def test_constants_are_taken_in_every_spelling(self, run: Any, level: str, kind: str) -> None:
        """And printed as Pulsar has them."""
        words = ("--isolation-level", level, "--subscription-type", kind, "-o", "json")
        row = run("subscriptions", "create", "orders", "audit", *words).json
        assert not undeclared(row, create.CREATED)
        assert (row["type"], row["subscriptionIsolationLevel"]) == ("Key_Shared", "READ_UNCOMMITTED")

    @pytest.mark.usefixtures("billing")
    @pytest.mark.parametrize(
        ("start", "first"),
        [
            ("earliest", "1:0"),
            ("latest", None),
            ("1:3", "1:3"),
            ("@2020-01-01", "1:0"),
            ("@2999-01-01", None),
        ],
    )
    def test_it_begins_where_it_is_told(self, run: Any, store: Store, start: str, first: str | None) -> None:
        """earliest, latest, a position, a time."""
        assert run("subscriptions", "create", "orders", "s", "--from", start).status == 0
        peeked = store.reports.peek_messages("orders", "s", 1)
        assert (str(peeked[0].message_id) if peeked else None) == first

    def test_a_second_one_of_the_name_is_a_conflict(self, run: Any) -> None:
        """Exit 4, the first is left as it is; an unknown topic is 3, a bad name 2."""
        run("subscriptions", "create", "orders", "billing", "--subscription-type", "shared")
        assert run("subscriptions", "create", "orders", "billing").status == 4
        assert run("subscriptions", "show", "orders", "billing", "-o", "json").json["type"] == "Shared"
        assert run("subscriptions", "create", "nowhere", "billing").status == 3
        assert run("subscriptions", "create", "orders", "../x").status == 2
        assert run("subscriptions", "create", "orders", "x", "--from", "1:x").status == 2

    @pytest.mark.usefixtures("billing")
    def test_list_of_one_topic_or_of_all(self, run: Any, store: Store) -> None:
        """Table, JSON, names."""
        store.create_topic("payments")
        store.admin.subscriptions.create_subscription("payments", "loader")
        assert run("subs", "ls", "-o", "name").out == "billing\nloader\n"
        assert run("subscriptions", "list", "orders", "-o", "name").out == "billing\n"
        row = run("subscriptions", "list", "orders", "-o", "json").json[0]
        assert not undeclared(row, ROW)
        assert (row["visible"], row["msgBacklog"], row["verdict"]) == (5, 5, "no-consumer")
        line = run("subscriptions", "list", "orders").out.splitlines()[1]
        assert line.split() == [
            "orders", "billing", "Shared", "READ_COMMITTED", "1:-1", "5", "0", "0", "0", "0", "0", "no-consumer",
        ]  # fmt: skip
        assert run("subscriptions", "list", "nowhere").status == 3

    def test_none_is_success(self, run: Any) -> None:
        """An empty array, or a note."""
        assert run("subscriptions", "list", "-o", "json").json == []
        outcome = run("subscriptions", "list", "orders")
        assert (outcome.status, outcome.out) == (0, "")
        assert "there are no subscriptions on orders" in outcome.err

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
    @pytest.mark.parametrize("command", ["show", "stats"])
    def test_without_a_subscription_the_topic_is_looked_at(self, run: Any, command: str) -> None:
        """A topic that is not there is said to be missing, with those near; of one that is, what it has."""
        outcome = run("subscriptions", command, "order")
        assert (outcome.status, outcome.err) == (3, run("subscriptions", "lag", "order").err)
        assert "Did you mean orders?" in outcome.err
        outcome = run("subscriptions", command, "orders")
        assert outcome.status == 2
        assert "error: missing argument 'SUBSCRIPTION': orders has billing\n" in outcome.err
        assert f"hint: txnctl subscriptions {command} --help says" in outcome.err

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


@pytest.fixture
def consuming(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that hold so many messages of billing in flight."""
    processes = []
    program = (
        "import sys\n"
        "from storage import Store\n"
        "store = Store.open(sys.argv[1])\n"
        "consumer = store.subscribe('orders', 'billing', consumer_name=sys.argv[2], receiver_queue_size=1)\n"
        "for _ in range(int(sys.argv[3])): consumer.receive(timeout=5)\n"
        "print('holds', flush=True)\n"
        "sys.stdin.read()\n"
    )

    def start(name: str, messages: int) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", program, str(path), name, str(messages)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "holds\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


class TestLag:
    """`subscriptions lag`: is it slow, or blocked, and by whom?"""

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
            assert "held by no process; it holds everything from 1:5 on." in out
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
        assert f"billing: worker-7 is stopped and holds 3 in flight, which {evict} gives to others" in out
        assert "2 messages could be read now" in out
        assert "slow" not in out
        assert out.endswith(f"Next: kill -CONT {process.pid}\n")
        assert run(*evict.split()[1:]).status == 0
        assert (
            "billing: nobody is attached; 5 messages could be read now."
            in run("subscriptions", "lag", "orders").out
        )

    @pytest.mark.usefixtures("billing")
    def test_when_all_is_in_flight_evict_is_named(self, run: Any, store: Store) -> None:
        """Nothing is ready, so only the consumer that holds it, or its eviction, moves anything."""
        way = (
            "if nothing moves, txnctl subscriptions evict orders billing anna gives what it holds to others."
        )
        with store.subscribe("orders", "billing", consumer_name="anna") as consumer:
            consumer.receive_batch(5, timeout=0)
            row = lag(run)
            assert row["visible"] == row["unackedMessages"] == 5
            assert f"billing: 5 in flight at anna; {way}\n" in run("subs", "lag", "orders", "billing").out
            store.create_producer("orders").send(b"one more")
            assert lag(run)["visible"] == 6
            assert "evict" not in run("subs", "lag", "orders", "billing").out

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

    def test_in_a_transaction_it_is_pending(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        """Listed until the end; then done, or undone. TXNCTL_TXN counts, --txn before it."""
        assert run("subscriptions", "pending", "orders", "billing", "-o", "json").json == []
        run("transactions", "begin")
        run("transactions", "begin")
        monkeypatch.setenv("TXNCTL_TXN", "0:1")
        outcome = run("subscriptions", "ack", "orders", "billing", "1:0")
        assert outcome.out == "Pending in 0:1: the acknowledgement of 1 message of billing on orders.\n"
        assert run("subscriptions", "ack", "orders", "billing", "1:1", "--txn", "0:2").status == 0
        rows = run("subscriptions", "pending", "orders", "billing", "-o", "json").json
        assert [(row["messageId"], row["kind"], row["txnId"]) for row in rows] == [
            ("1:0", "individual", "0:1"),
            ("1:1", "individual", "0:2"),
        ]
        assert not undeclared(rows[0], pending.PENDING)
        assert run("subscriptions", "pending", "orders", "billing").out.splitlines()[1].split()[:2] == [
            "1:0", "individual",
        ]  # fmt: skip
        assert lag(run)["pending"] == 2
        run("transactions", "commit", "0:1")
        run("transactions", "abort", "0:2")
        assert (lag(run)["pending"], lag(run)["visible"]) == (0, 4)

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

    def test_what_is_pending_elsewhere_is_a_conflict(self, run: Any) -> None:
        """Naming the transaction; --force aborts it."""
        run("transactions", "begin")
        run("subscriptions", "ack", "orders", "billing", "1:0", "--txn", "0:1")
        outcome = run("subscriptions", "ack", "orders", "billing", "1:0", "-o", "json")
        assert (outcome.status, outcome.error["code"]) == (4, "transaction-conflict")
        assert "0:1" in outcome.error["message"]
        assert run("subscriptions", "ack", "orders", "billing", "1:0", "--force").status == 0
        assert run("transactions", "show", "0:1", "-o", "json").json["state"] == "ABORTED"

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

    @pytest.mark.parametrize("text", ["1", "latest", "1:0:x", "1:-1", "0:\x1b"])
    def test_what_is_no_message_id(self, run: Any, text: str) -> None:
        """Exit 2, and harmless."""
        outcome = run("subscriptions", "ack", "orders", "billing", text)
        assert outcome.status == 2
        assert "\x1b" not in outcome.err
        assert lag(run)["visible"] == 5


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

    def test_skip_and_clear(self, run: Any, store: Store) -> None:
        """Visible ones only: what is behind an open transaction stays."""
        producer = store.create_producer("orders")
        producer.send(b"open", txn=store.begin_transaction())
        producer.send(b"after")
        row = run("subscriptions", "skip", "orders", "billing", "2", "--yes", "-o", "json").json
        assert not undeclared(row, cursor_move.SKIPPED)
        assert (row["skipped"], row["markDeletePositionAfter"]) == (2, "1:1")
        outcome = run("subscriptions", "clear-backlog", "orders", "billing", "--yes")
        assert outcome.out == "Skipped 3 messages of billing on orders: markDeletePosition 1:1 -> 1:4.\n"
        row = lag(run)
        assert (row["visible"], row["blocked"], row["uncommitted"]) == (0, 1, 1)
        assert run("subscriptions", "skip", "orders", "billing", "0", "--yes").status == 2

    @pytest.mark.parametrize(
        ("words", "fields"),
        [
            (("seek", "orders", "billing", "1:3"), seek.SOUGHT),
            (("skip", "orders", "billing", "4"), cursor_move.SKIPPED),
            (("clear-backlog", "orders", "billing"), cursor_move.SKIPPED),
            (("evict", "orders", "billing"), evict.EVICTED),
            (
                ("update", "orders", "billing", "--isolation-level", "read-uncommitted"),
                update.UPDATED,
            ),
            (("delete", "orders", "billing"), delete.DELETED),
        ],
    )
    def test_a_dry_run_says_what_the_real_one_does(
        self, run: Any, words: tuple[str, ...], fields: Any
    ) -> None:
        """Rule 10: the same numbers; and it changes nothing, and leaves nothing in the audit trail."""
        before = run("subscriptions", "stats", "orders", "billing", "-o", "json").json
        dry = run("subscriptions", *words, "--dry-run", "-o", "json").json
        assert run("subscriptions", *words, "--dry-run").out.startswith("DRY RUN: nothing was changed.\n\n")
        after = run("subscriptions", "stats", "orders", "billing", "-o", "json").json
        for row in (before, after):
            del row["asOfAt"], row["asOfMs"]
        assert after == before
        real = run("subscriptions", *words, "--yes", "--reason", "because", "-o", "json").json
        assert not undeclared(real, fields)
        assert (dry.pop("dryRun"), real.pop("dryRun")) == (True, False)
        assert dry == real

    def test_a_dry_run_over_many_messages_counts_them_all(self, run: Any, store: Store) -> None:
        """Also where the real one takes several store transactions."""
        store.create_topic("long")
        store.admin.subscriptions.create_subscription("long", "s", initial_position=EARLIEST)
        with store.create_producer("long") as producer:
            txn = store.begin_transaction()
            for _ in range(30):
                producer.send_batch([b"x"] * 1000, txn=txn)
            store.commit_transaction(txn)
        words = ("subscriptions", "clear-backlog", "long", "s", "--yes", "-o", "json")
        dry, real = run(*words, "--dry-run").json, run(*words).json
        assert dry["skipped"] == real["skipped"] == 30_000
        assert dry["markDeletePositionAfter"] == real["markDeletePositionAfter"]


@pytest.mark.usefixtures("billing")
class TestChange:
    """`evict`, `update`, `delete`."""

    def test_evict(self, run: Any, store: Store) -> None:
        """What they held is free; an unknown consumer is not found."""
        consumer = store.subscribe("orders", "billing", consumer_name="anna", receiver_queue_size=3)
        held = consumer.receive_batch(3, timeout=0)
        assert run("subscriptions", "evict", "orders", "billing", "berta").status == 3
        dry = run("subscriptions", "evict", "orders", "billing", "anna", "--dry-run").out
        assert dry.endswith('\nRun: txnctl subscriptions evict orders billing anna --reason "..."\n')
        outcome = run("subscriptions", "evict", "orders", "billing", "anna")
        assert outcome.out == "Evicted anna from billing on orders; 3 messages in flight released.\n"
        from storage.errors import ConsumerEvicted

        with pytest.raises(ConsumerEvicted):
            consumer.acknowledge(held)
        assert (
            run("subscriptions", "evict", "orders", "billing").out
            == "Nobody is attached to billing on orders.\n"
        )
        (record,) = [
            row
            for row in row_json(store.reports.list_audit_records())
            if row["action"] == "subscriptions evict"
        ]
        assert record["target"] == "orders billing anna"

    def test_seek_says_what_it_withdraws(self, run: Any, store: Store) -> None:
        """From whom it is taken back, before and after."""
        with store.subscribe("orders", "billing", receiver_queue_size=3) as consumer:
            consumer.receive_batch(3, timeout=0)
            for words, told in ((("--dry-run",), "would be withdrawn"), ((), "were withdrawn")):
                out = run("subscriptions", "seek", "orders", "billing", "earliest", *words).out
                assert f"In flight {told}: 3 messages.\n" in out

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

    def test_what_is_no_topic_but_something_else_is_named(self, run: Any, store: Store) -> None:
        """A subscription in its place, also where the two were swapped; a table."""
        store.create_table("accounts")
        for words, told in (
            (("transactions", "blocked", "billing"), "billing is a subscription of orders: name the topic"),
            (("subscriptions", "evict", "billing", "orders"), "billing is a subscription of orders: name"),
            (("topics", "stats", "accounts"), "accounts is a table: `txnctl tables --help`."),
            (("topics", "stats", "order"), "Did you mean orders?"),
        ):
            outcome = run(*words)
            assert outcome.status == 3
            assert told in outcome.err

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

    def test_delete(self, run: Any, store: Store) -> None:
        """Refused while somebody is attached; --force evicts. The topic stays."""
        consumer = store.subscribe("orders", "billing", consumer_name="anna")
        assert run("subscriptions", "delete", "orders", "billing", "--yes").status == 4
        outcome = run("subscriptions", "delete", "orders", "billing", "--yes", "--force")
        assert outcome.out.splitlines() == [
            "Deleted subscription billing on orders.",
            "Consumers were evicted: anna.",
        ]
        assert run("subscriptions", "show", "orders", "billing").status == 3
        assert run("subscriptions", "delete", "orders", "billing", "--yes").status == 3
        assert len(store.reader("orders").read_batch(10)) == 5
        del consumer

    def test_the_reason_stands_in_the_audit_trail(self, run: Any, store: Store) -> None:
        """Of every administrative command."""
        run("subscriptions", "seek", "orders", "billing", "1:1", "--yes", "--reason", "one")
        run("subscriptions", "skip", "orders", "billing", "1", "--yes", "--reason", "two")
        run("subscriptions", "evict", "orders", "billing", "--reason", "nobody was there")
        with store.subscribe("orders", "billing"):
            run("subscriptions", "evict", "orders", "billing", "--reason", "three")
        run("subscriptions", "delete", "orders", "billing", "--yes", "--reason", "four")
        assert [
            (row["action"], row["reason"]) for row in reversed(row_json(store.reports.list_audit_records()))
        ] == [
            ("subscriptions seek", "one"),
            ("subscriptions skip", "two"),
            ("subscriptions evict", "three"),
            ("subscriptions delete", "four"),
        ]
