"""`txnctl consume`."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, Store, SubscriptionType
from tests.txnctl.commands.consume.consume_steps import backlog, send, send_batch
from tests.txnctl.processes import sleeps_with_store
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


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
        wait_for(lambda: sleeps_with_store(second.pid, path), "the second one waits")
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
            assert process.wait(20) == 6
        assert b"cannot write the result" in process.stderr.read()
        assert backlog(path) == 3


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


@pytest.mark.parametrize(
    "words", [(), ("-s", "billing"), ("--tail", "3"), ("--from", "@1s"), ("--since", "1s")]
)
def test_a_table_without_messages_says_so(run: Any, words: tuple[str, ...]) -> None:
    """On standard error, and for the eye alone: values and JSON for programs come without a note."""
    assert run("topics", "create", "empty").status == 0
    assert run("subscriptions", "create", "empty", "billing").status == 0
    outcome = run("consume", "empty", *words, "-o", "table")
    assert (outcome.status, outcome.out) == (0, "")
    assert outcome.err == "txnctl: no message came from empty\n"
    assert run("consume", "empty", *words, "-o", "value").err == ""
    assert run("produce", "empty", "-m", "1", "-q").status == 0
    assert run("consume", "empty", *words, "-o", "table").err == ""
