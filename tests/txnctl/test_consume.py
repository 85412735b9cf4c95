"""`txnctl consume`: reading, taking from subscriptions, running commands, and what deaths and closed pipes leave."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store, SubscriptionType
from tests.row_json import row_json
from tests.txnctl.processes import wait_for
from txnctl.output.field import undeclared
from txnctl.output.messages import DELIVERED_FIELDS, MESSAGE_FIELDS

pytestmark = pytest.mark.usefixtures("path")
TOPICS = ("orders",)


def send(path: Path, *values: bytes | None, topic: str = "orders", **common: Any) -> None:
    """Each an entry of its own."""
    with Store.open(path) as store:
        producer = store.create_producer(topic)
        for value in values:
            producer.send(value, **common)


def send_batch(path: Path, count: int) -> None:
    """`count` messages, the numbers from 0 on, in one batch."""
    with Store.open(path) as store:
        store.create_producer("orders").send_batch([b"%d" % number for number in range(count)])


def backlog(path: Path, name: str = "s") -> int:
    """Messages of the subscription that are not acknowledged."""
    with Store.open(path, read_only=True) as store:
        return int(row_json(store.reports.subscription_stats("orders", name))["msgBacklog"])


class TestFormats:
    """The same messages in every format."""

    @pytest.fixture(autouse=True)
    def _messages(self, path: Path) -> None:
        send(path, b"a", None, b"\xff", key="B1", properties={"p": "v"}, event_time=5)
        send_batch(path, 3)

    def test_ndjson_where_it_is_piped(self, run: Any) -> None:
        """A declared object a message."""
        rows = run("consume", "orders").rows
        assert [row.get("value") for row in rows] == ["a", None, None, "0", "1", "2"]
        assert rows[2]["valueBase64"] == "/w=="
        assert [row["messageId"] for row in rows] == ["1:0", "1:1", "1:2", "1:3:0", "1:3:1", "1:3:2"]
        assert rows[0]["properties"] == {"p": "v"}
        for row in rows:
            assert not undeclared(row, MESSAGE_FIELDS)

    def test_json_is_one_array_of_the_same(self, run: Any) -> None:
        """An empty list is one too."""
        assert run("consume", "orders", "-o", "json").json == run("consume", "orders").rows
        assert run("consume", "orders", "-o", "json", "--from", "latest").json == []
        assert run("consume", "orders", "-o", "json", "-n", "5").json == run("consume", "orders").rows[:5]

    def test_values_and_names(self, run: Any, start: Any) -> None:
        """Bare bytes, whatever they are, and ids."""
        for words in ((), ("-s", "s", "--from", "earliest")):
            out, _ = start("consume", "orders", "-o", "value", *words).communicate(timeout=20)
            assert out == b"a\n\n\xff\n0\n1\n2\n"
        assert run("consume", "orders", "-o", "name", "-n", "4").out == "1:0\n1:1\n1:2\n1:3:0\n"

    def test_a_table_on_a_terminal(self, run: Any) -> None:
        """A column appears where a message has something to say there."""
        lines = run("consume", "orders", terminal=True).out.splitlines()
        assert lines[0].split() == [
            "MESSAGE",
            "ID",
            "PUBLISHED",
            "EVENT",
            "TIME",
            "PROPERTIES",
            "KEY",
            "VALUE",
        ]
        assert len(lines) == 7
        plain = run("consume", "orders", "--from", "1:3", terminal=True).out.splitlines()
        assert plain[0].split() == ["MESSAGE", "ID", "PUBLISHED", "KEY", "VALUE"]
        assert plain[1].endswith("-    0")

    def test_a_column_that_comes_later_gets_new_headings(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is left out because the first page did not have it."""
        monkeypatch.setattr("txnctl.commands.consume.output.PAGE_ROWS", 2)
        lines = run("consume", "orders", "--from", "1:2", "-o", "table").out.splitlines()
        send(path, b"last", properties={"late": "yes"})
        later = run("consume", "orders", "--from", "1:3", "-o", "table").out.splitlines()
        assert sum("PROPERTIES" in line for line in lines) == 1
        assert sum("PROPERTIES" in line for line in later) == 1
        assert "late=yes" in later[-1]

    @pytest.mark.parametrize("form", ["table", "value", "ndjson", "json"])
    def test_stored_data_cannot_drive_a_terminal(self, run: Any, path: Path, form: str) -> None:
        """Escape sequences in values, keys and properties are written out."""
        evil = "\x1b[31m\u009b2J\u202eevil\x07"
        send(path, evil.encode(), key=evil, properties={evil: evil})
        out = run("consume", "orders", "-o", form, terminal=True).out
        assert "evil" in out
        assert out.replace("\n", "").isprintable()

    def test_what_a_subscription_hands_out_says_how_often(self, run: Any) -> None:
        """All formats again, with the redelivery count."""
        words = ("consume", "orders", "-s", "s", "--from", "earliest", "--ack", "none")
        rows = run(*words).rows
        assert [row["redeliveryCount"] for row in rows] == [0] * 6
        assert not undeclared(rows[0], DELIVERED_FIELDS)
        again = run(*words, "-o", "json").json
        assert [row["redeliveryCount"] for row in again] == [1] * 6
        assert "REDELIVERED" in run(*words, "-o", "table").out.splitlines()[0]
        assert run(*words, "-o", "name").out.splitlines() == [row["messageId"] for row in rows]


class TestReading:
    """Without -s."""

    def test_it_changes_nothing(self, run: Any, path: Path) -> None:
        """Read commands leave the files byte-identical."""
        send_batch(path, 10)
        before = {file: file.read_bytes() for file in path.iterdir() if file.name != "lock.mdb"}
        assert run("consume", "orders").status == 0
        assert {file: file.read_bytes() for file in path.iterdir() if file.name != "lock.mdb"} == before

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("--from", "earliest"), "0 1 2 3 4 5 6 7"),
            (("--from", "latest"), ""),
            (("--from", "1:1"), "3 4 5 6 7"),
            (("--from", "1:0:2"), "2 3 4 5 6 7"),
            (("--from", "1:9"), ""),
            (("--to", "1:1"), "0 1 2 3"),
            (("--to", "1:0:1"), "0 1"),
            (("--to", "earliest"), ""),
            (("--to", "latest"), "0 1 2 3 4 5 6 7"),
            (("--from", "1:0:1", "--to", "1:2:0"), "1 2 3 4"),
            (("--from", "1:2", "--to", "1:1"), ""),
            (("-n", "2", "--from", "1:0:1"), "1 2"),
            (("-n", "4"), "0 1 2 3"),
            (("--from", "@2020-01-01"), "0 1 2 3 4 5 6 7"),
            (("--from", "@9000000000000"), ""),
            (("--to", "@2020-01-01"), ""),
        ],
    )
    def test_begin_and_end(self, run: Any, path: Path, words: Sequence[str], expected: str) -> None:
        """A position or message id is the first, or last, one read."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            producer.send_batch([b"0", b"1", b"2"])
            producer.send(b"3")
            producer.send_batch([b"4", b"5", b"6", b"7"])
        outcome = run("consume", "orders", "-o", "value", *words)
        assert outcome.status == 0
        assert outcome.out.split() == expected.split()

    def test_a_time_is_the_first_entry_stored_then_or_later(self, run: Any, path: Path) -> None:
        """Also across ledgers."""
        with Store.open(path) as store:
            store.create_topic("short", ledger_entries_max=2)
            producer = store.create_producer("short")
            times = []
            for number in range(7):
                time.sleep(0.003)
                producer.send(b"%d" % number)
                times.append(store.reader("short", start=store.reports.last_message_id("short")).read_next(0))
        for number, message in enumerate(times):
            out = run("consume", "short", "-o", "value", "--from", f"@{message.publish_time}").out
            assert out.split() == [str(each) for each in range(number, 7)]
            out = run("consume", "short", "-o", "value", "--to", f"@{message.publish_time}").out
            assert out.split() == [str(each) for each in range(number + 1)]

    def test_open_and_aborted_transactions(self, run: Any, path: Path) -> None:
        """READ_COMMITTED stops and says why; READ_UNCOMMITTED shows all with their states."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            aborted, opened = store.begin_transaction(), store.begin_transaction()
            producer.send(b"dropped", txn=aborted)
            store.admin.transactions.abort_transaction(aborted)
            producer.send(b"first")
            producer.send_batch([b"held 1", b"held 2"], txn=opened)
            producer.send_batch([b"behind 1", b"behind 2", b"behind 3"])
        outcome = run("consume", "orders", "-o", "value")
        assert (outcome.status, outcome.out) == (0, "first\n")
        assert "3 committed messages wait behind open transaction 0:2, with 2 uncommitted" in outcome.err
        for level in ("READ_UNCOMMITTED", "read-uncommitted", "read_uncommitted"):
            outcome = run("consume", "orders", "--isolation-level", level)
            assert [(row["value"], row["txnState"]) for row in outcome.rows] == [
                ("dropped", "ABORTED"),
                ("first", None),
                ("held 1", "OPEN"),
                ("held 2", "OPEN"),
                ("behind 1", None),
                ("behind 2", None),
                ("behind 3", None),
            ]
            assert outcome.err == ""
        assert run("consume", "orders", "-n", "1").err == ""

    def test_uncommitted_messages_alone_are_said_too(self, run: Any, path: Path) -> None:
        """Nothing waits, and yet it is not the end."""
        with Store.open(path) as store:
            store.create_producer("orders").send(b"x", txn=store.begin_transaction())
        outcome = run("consume", "orders")
        assert outcome.out == ""
        assert "1 uncommitted message not shown, the first of open transaction 0:1" in outcome.err

    def test_the_transaction_of_the_environment_is_none_of_its_business(
        self, run: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A script inside `transactions run` may read."""
        monkeypatch.setenv("TXNCTL_TXN", "0:99")
        assert run("consume", "orders").status == 0

    @pytest.mark.parametrize(
        "words",
        [
            ("--txn", "0:1"),
            ("--ack", "none"),
            ("--exec", "true"),
            ("--consumer", "me"),
            ("--subscription-type", "shared"),
            ("-s", "s", "--to", "1:1"),
            ("-s", "s", "--on-error", "retry"),
            ("-s", "s", "--exec", "true", "--ack", "auto"),
            ("-f", "-o", "json"),
            ("-n", "0"),
        ],
    )
    def test_options_that_do_not_fit_are_refused(self, run: Any, path: Path, words: Sequence[str]) -> None:
        """Exit 2; no subscription comes into being."""
        assert run("consume", "orders", *words).status == 2
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.list_subscriptions("orders")) == []

    def test_what_is_not_there(self, run: Any) -> None:
        """Exit 3, with and without a subscription."""
        assert run("consume", "none").status == 3
        assert run("consume", "none", "-s", "s").status == 3


class TestSubscriptions:
    """With -s."""

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


class TestWaiting:
    """--follow and --timeout."""

    def test_follow_prints_what_comes(self, start: Any, path: Path) -> None:
        """Soon after its commit; a transaction's messages when it commits; nothing of what is aborted."""
        send(path, b"before")
        process = start("consume", "orders", "-f", "-o", "value")
        assert process.stdout.readline() == b"before\n"
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            for number in range(5):
                began = time.monotonic()
                producer.send(b"%d" % number)
                assert process.stdout.readline() == b"%d\n" % number
                assert time.monotonic() - began < 5
            producer.send_batch([b"x", b"y"])
            assert [process.stdout.readline() for _ in range(2)] == [b"x\n", b"y\n"]
            committed, aborted = store.begin_transaction(), store.begin_transaction()
            producer.send(b"aborted", txn=aborted)
            producer.send(b"committed", txn=committed)
            store.commit_transaction(committed)
            store.admin.transactions.abort_transaction(aborted)
            assert process.stdout.readline() == b"committed\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130

    def test_follow_from_inside_a_batch_that_is_yet_to_come(self, start: Any, path: Path) -> None:
        """The message named is the first one printed."""
        process = start("consume", "orders", "-f", "--from", "1:0:2", "-o", "value", "-n", "2")
        time.sleep(0.2)
        send_batch(path, 5)
        assert process.wait(20) == 0
        assert process.stdout.read() == b"2\n3\n"

    def test_follow_of_a_subscription(self, start: Any, path: Path) -> None:
        """Each line is acknowledged when it is out."""
        process = start("consume", "orders", "-s", "s", "-f", "-o", "value")
        process.stderr.readline()
        for number in range(3):
            send(path, b"%d" % number)
            assert process.stdout.readline() == b"%d\n" % number
        wait_for(lambda: backlog(path) == 0, "all are acknowledged")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143

    def test_a_follower_that_stands_still_says_why(self, start: Any, path: Path) -> None:
        """Once, with the transaction."""
        with Store.open(path) as store:
            producer = store.create_producer("orders")
            txn = store.begin_transaction()
            producer.send(b"held", txn=txn)
            producer.send(b"behind")
            for words in ((), ("-s", "s", "--from", "earliest")):
                process = start("consume", "orders", "-f", "-o", "value", *words)
                if words:
                    process.stderr.readline()
                line = process.stderr.readline()
                assert b"1 committed message waits behind open transaction 0:1" in line
                process.send_signal(signal.SIGINT)
                assert process.wait(20) == 130
                assert process.stderr.read() == b"txnctl: error: interrupted\n"
            store.admin.transactions.abort_transaction(txn)

    def test_a_follower_does_not_burn_a_core(self, start: Any) -> None:
        """Over a second of standing still it uses a fraction of one."""
        process = start("consume", "orders", "-f")
        time.sleep(0.7)

        def used() -> float:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        if not Path("/proc/self/stat").exists():
            return
        before = used()
        time.sleep(1)
        assert used() - before < 0.25

    def test_timeout(self, run: Any, path: Path) -> None:
        """Exit 7 if what was waited for did not come; what came is printed."""
        assert run("consume", "orders", "--timeout", "50ms").status == 7
        send(path, b"a")
        outcome = run("consume", "orders", "--timeout", "50ms", "-n", "2", "-o", "value")
        assert (outcome.status, outcome.out) == (7, "a\n")
        assert "only 1 of 2 messages" in outcome.err
        assert run("consume", "orders", "--timeout", "50ms").status == 0
        assert run("consume", "orders", "--timeout", "10s", "-n", "1").status == 0
        outcome = run(
            *("consume", "orders", "-s", "s", "--from", "earliest", "--timeout", "50ms", "-n", "2"),
            *("-o", "value"),
        )
        assert (outcome.status, outcome.out) == (7, "a\n")
        assert backlog(path) == 0

    def test_a_timeout_before_the_document_is_whole(self, run: Any, path: Path) -> None:
        """One valid document or nothing; and what was not printed is not acknowledged."""
        send(path, b"a")
        words = ("consume", "orders", "-s", "s", "--from", "earliest", "-o", "json", "-n", "2")
        outcome = run(*words, "--timeout", "50ms")
        assert (outcome.status, outcome.out) == (7, "")
        assert backlog(path) == 1

    def test_what_is_waited_for_comes(self, start: Any, path: Path) -> None:
        """--timeout waits."""
        process = start("consume", "orders", "-n", "1", "--timeout", "20s", "-o", "value")
        time.sleep(0.2)
        send(path, b"a")
        assert process.wait(20) == 0
        assert process.stdout.read() == b"a\n"


class TestDeath:
    """A consumer that dies loses nothing."""

    def test_kill_nine_frees_what_was_in_flight(self, start: Any, run: Any, path: Path) -> None:
        """At once, for the next command, in order."""
        send_batch(path, 10)
        process = start(
            *("consume", "orders", "-s", "s", "--from", "earliest", "--ack", "none", "-f", "-o", "value")
        )
        assert [process.stdout.readline() for _ in range(10)] == [b"%d\n" % number for number in range(10)]
        process.kill()
        process.wait()
        rows = run("consume", "orders", "-s", "s").rows
        assert [row["value"] for row in rows] == [str(number) for number in range(10)]
        assert {row["redeliveryCount"] for row in rows} == {1}

    def test_a_waiting_consumer_takes_over(self, start: Any, path: Path) -> None:
        """Within a second or so, without anybody doing anything."""
        send_batch(path, 5)
        words = ("consume", "orders", "-s", "s", "--from", "earliest", "--subscription-type", "failover")
        words += ("-f", "-o", "value")
        first = start(*words, "--ack", "none")
        for _ in range(5):
            first.stdout.readline()
        second = start(*words)
        time.sleep(0.3)
        first.kill()
        first.wait()
        assert [second.stdout.readline() for _ in range(5)] == [b"%d\n" % number for number in range(5)]
        wait_for(lambda: backlog(path) == 0, "all are acknowledged")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_gives_back_what_was_not_written(
        self, start: Any, run: Any, path: Path, number: int
    ) -> None:
        """At once, although nobody reads the pipe: no message is lost, and none counts as handed out for nothing."""
        send(path, *[b"x" * 10_000 for _ in range(50)])
        process = start("consume", "orders", "-s", "s", "--from", "earliest", "-o", "value")
        process.stdout.read(1)
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert backlog(path) == 50
        rows = run("consume", "orders", "-s", "s").rows
        assert len(rows) == 50

    def test_a_closed_pipe_ends_it_quietly(self, start: Any, path: Path) -> None:
        """`| head -1`: exit 141 without a word; what was not written is not acknowledged."""
        send(path, *[b"%06d" % number + b"x" * 5000 for number in range(1000)])
        for words in ((), ("-s", "s", "--from", "earliest")):
            process = start("consume", "orders", "-o", "value", *words)
            assert process.stdout.readline().startswith(b"000000")
            process.stdout.close()
            assert process.wait(20) == 141
            told = process.stderr.read()
            assert told == b"" or told.startswith(b"txnctl: created subscription"), told
            assert told.count(b"\n") <= 1
        left = backlog(path)
        assert left >= 900

    def test_a_follower_notices_that_nobody_reads(self, start: Any, path: Path) -> None:
        """Without a message to write."""
        send(path, b"a")
        for words in ((), ("-s", "s", "--from", "earliest")):
            process = start("consume", "orders", "-f", "-o", "value", *words)
            assert process.stdout.readline() == b"a\n"
            process.stdout.close()
            assert process.wait(20) == 141

    def test_acknowledged_is_only_what_was_flushed(self, start: Any, path: Path) -> None:
        """A full disk under standard output: the line is not out, the message comes again."""
        if not Path("/dev/full").exists():
            return
        send_batch(path, 3)
        with open("/dev/full", "wb") as full:
            process = start("consume", "orders", "-s", "s", "--from", "earliest", stdout=full)
            assert process.wait(20) == 1
        assert b"cannot write the result" in process.stderr.read()
        assert backlog(path) == 3


class TestExec:
    """--exec: a command for each message."""

    WORDS = ("consume", "orders", "-s", "s", "--from", "earliest", "--exec")

    def test_the_value_and_its_facts(self, run: Any, path: Path, tmp_path: Path) -> None:
        """Standard input and environment; acknowledged when the command is done."""
        with Store.open(path) as store:
            producer = store.create_producer("orders", producer_name="web")
            producer.send(b"line 1\nline 2", key="B1", properties={"p": 'q"'}, event_time=5)
            producer.send(None, key=b"\xff")
        command = (
            f"cat >> {tmp_path}/values; echo >> {tmp_path}/values;"
            f" {sys.executable} -c 'import json, os; print(json.dumps(dict(os.environ)))' >> \"{tmp_path}/facts\""
        )
        outcome = run(*self.WORDS, command)
        assert outcome.status == 0
        assert outcome.out == ""
        assert "2 messages done, 0 failed" in outcome.err
        assert (tmp_path / "values").read_text() == "line 1\nline 2\n\n"
        first, second = map(json.loads, (tmp_path / "facts").read_text().splitlines())
        facts = {name: value for name, value in first.items() if name.startswith("TXNCTL_")}
        assert int(facts.pop("TXNCTL_MESSAGE_PUBLISH_TIME_MS")) > 1_700_000_000_000
        assert facts == {
            "TXNCTL_STORE": str(path),
            "TXNCTL_MESSAGE_ID": "1:0",
            "TXNCTL_MESSAGE_TOPIC": "orders",
            "TXNCTL_MESSAGE_KEY": "B1",
            "TXNCTL_MESSAGE_PROPERTIES": '{"p":"q\\""}',
            "TXNCTL_MESSAGE_EVENT_TIME_MS": "5",
            "TXNCTL_MESSAGE_PRODUCER": "web",
            "TXNCTL_MESSAGE_SEQUENCE_ID": "0",
            "TXNCTL_MESSAGE_REDELIVERY_COUNT": "0",
        }
        assert second["TXNCTL_MESSAGE_NULL"] == "1"
        assert second["TXNCTL_MESSAGE_KEY_BASE64"] == "/w=="
        assert "TXNCTL_MESSAGE_KEY" not in second
        assert backlog(path) == 0

    def test_a_command_that_does_not_read_its_input(self, run: Any, path: Path) -> None:
        """Is no failure, however large the value."""
        send(path, b"x" * 1_000_000)
        assert run(*self.WORDS, "true").status == 0
        assert backlog(path) == 0

    def test_a_failure_stops_and_gives_the_message_back(self, run: Any, path: Path) -> None:
        """With the command's exit code; what came before is done, the message comes again."""
        send_batch(path, 4)
        outcome = run(*self.WORDS, "read n; test $n -lt 2 || exit 42", "-o", "ndjson")
        assert outcome.status == 42
        assert outcome.error["code"] == "command-failed"
        assert outcome.error["details"] == {"status": 42, "done": 2, "failed": 1}
        rows = run("consume", "orders", "-s", "s").rows
        assert [(row["value"], row["redeliveryCount"]) for row in rows] == [("2", 1), ("3", 0)]

    def test_a_command_that_a_signal_ended(self, run: Any, path: Path) -> None:
        """128 and its number, as in a shell."""
        send(path, b"a")
        assert run(*self.WORDS, "kill -9 $$").status == 137
        assert run(*self.WORDS, "no-such-command-at-all 2>/dev/null").status == 127
        assert backlog(path) == 1

    def test_retry_goes_on_and_takes_it_again(self, start: Any, path: Path, tmp_path: Path) -> None:
        """After the delay, without a new command."""
        send_batch(path, 3)
        command = (
            f"read n; echo $n >> {tmp_path}/seen; test $n != 1 || test $TXNCTL_MESSAGE_REDELIVERY_COUNT = 1"
        )
        process = start(*self.WORDS, command, "--on-error", "retry", "--retry-delay", "100ms", "-f")
        wait_for(lambda: (tmp_path / "seen").exists() and backlog(path) == 0, "all are done")
        assert (tmp_path / "seen").read_text().split() == ["0", "1", "2", "1"]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert b"message 1:0:1: the command exited with 1" in process.stderr.read()

    def test_retry_ends_with_the_failure(self, run: Any, path: Path) -> None:
        """Cron shall know."""
        send_batch(path, 3)
        outcome = run(*self.WORDS, "read n; test $n != 1", "--on-error", "retry")
        assert outcome.status == 1
        assert "2 messages done, 1 failed" in outcome.err
        assert backlog(path) == 1

    def test_a_command_takes_part_in_the_transaction(self, run: Any, path: Path) -> None:
        """What it produces and what is acknowledged become visible together."""
        with Store.open(path) as store:
            store.create_topic("done")
        send_batch(path, 2)
        txn = run("transactions", "begin").out.strip()
        command = f"{sys.executable} -m txnctl produce done -q"
        assert run(*self.WORDS, command, "--txn", txn).status == 0
        assert run("consume", "done").out == ""
        run("transactions", "commit", txn)
        assert run("consume", "done", "-o", "value").out.split() == ["0", "1"]
        assert backlog(path) == 0

    def test_others_share_the_work(self, start: Any, path: Path, tmp_path: Path) -> None:
        """A command takes its time: only its own message is in flight meanwhile."""
        send_batch(path, 4)
        words = (*self.WORDS, f"cat >> {tmp_path}/$$; sleep 0.3; cat {tmp_path}/$$")
        workers = [start(*words, "--subscription-type", "shared") for _ in range(2)]
        assert [worker.wait(20) for worker in workers] == [0, 0]
        outs = [worker.stdout.read().decode() for worker in workers]
        assert sorted("".join(outs)) == list("0123")
        assert all(outs)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_ends_the_command_too(self, start: Any, path: Path, tmp_path: Path, number: int) -> None:
        """And the message is not acknowledged."""
        send(path, b"a")
        process = start(*self.WORDS, f"echo $$ > {tmp_path}/pid; exec sleep 60")
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the command runs")
        child = int((tmp_path / "pid").read_text())
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
        assert backlog(path) == 1


class TestTerminal:
    """At a real terminal."""

    def test_lines_typed_are_messages(self, path: Path) -> None:
        """Each is stored when it is ended; Ctrl-D ends."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "txnctl", "produce", "orders", "--print-ids"],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        with process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert b"end with Ctrl-D" in process.stderr.readline()
            os.write(ours, b"first\n")
            assert process.stdout.readline() == b"1:0\n"
            os.write(ours, b"second\n")
            assert process.stdout.readline() == b"1:1\n"
            os.write(ours, b"\x04")
            assert process.wait(20) == 0
            process.communicate()
        os.close(ours)
        with Store.open(path, read_only=True) as store:
            assert [message.value for message in store.reader("orders")] == [b"first", b"second"]

    def test_a_shared_subscription_of_the_api_and_of_the_command(self, run: Any, path: Path) -> None:
        """They are equals."""
        send_batch(path, 4)
        with Store.open(path) as store:
            consumer = store.subscribe(
                *("orders", "s"),
                subscription_type=SubscriptionType.SHARED,
                initial_position=EARLIEST,
                receiver_queue_size=2,
            )
            mine = consumer.receive_batch(2, timeout=0)
            out = run("consume", "orders", "-s", "s", "-o", "value").out
            assert [message.value for message in mine] == [b"0", b"1"]
            assert out.split() == ["2", "3"]
            consumer.acknowledge(mine)
            consumer.close()
        assert backlog(path) == 0
