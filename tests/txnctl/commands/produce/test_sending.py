"""Sending: `txnctl/commands/produce/sending.py`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from storage import IsolationLevel, Store
from tests.row_json import row_json
from tests.txnctl.commands.produce.produce_steps import stored, values
from tests.waiting import let_pass, wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestSequenceIds:
    """The same input may be sent again."""

    def test_what_is_stored_already_is_left_out(self, run: Any, path: Path) -> None:
        """Each line has its own id, so that a line mended later finds its place."""
        words = ("produce", "orders", "--producer", "load", "--sequence-id", "100", "--input", "ndjson")
        first = b'{"value":"1"}\nbad\n{"value":"3"}\n'
        assert run(*words, "--on-error", "skip", stdin=first).status == 0
        outcome = run(*words, "-o", "json", stdin=first.replace(b"bad", b'{"value":"2"}'))
        assert (outcome.json["messages"], outcome.json["duplicates"]) == (1, 2)
        assert [(m.value, m.sequence_id) for m in stored(path)] == [(b"1", 100), (b"3", 102), (b"2", 101)]
        again = run(*words, stdin=b'{"value":"1"}\n')
        assert "1 message stored before, left out" in again.err

    def test_given_messages(self, run: Any, path: Path) -> None:
        """So do scripts that try again."""
        for _ in range(2):
            run("produce", "orders", "--producer", "load", "--sequence-id", "0", "-m", "a", "-m", "b")
        assert values(path) == [b"a", b"b"]


class TestTransactions:
    """--txn, TXNCTL_TXN, --atomic."""

    def test_messages_are_visible_when_the_transaction_commits(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By option and by variable."""
        txn = run("transactions", "begin").out.strip()
        assert "visible when transaction" in run("produce", "orders", "-m", "a", "--txn", txn).err
        monkeypatch.setenv("TXNCTL_TXN", txn)
        assert run("produce", "orders", "-m", "b", "-o", "json").json["txnId"] == txn
        assert values(path) == []
        run("transactions", "commit")
        assert values(path) == [b"a", b"b"]
        assert run("produce", "orders", "-m", "c").status == 4

    def test_a_failed_begin_sends_nothing_outside_of_a_transaction(self, path: Path) -> None:
        """`export` succeeds with what the failed command has printed: nothing."""
        txnctl = f"{sys.executable} -m txnctl"
        script = (
            f"export TXNCTL_TXN=$({txnctl} transactions begin --timeout 1y); {txnctl} produce orders -m a"
        )
        ended = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False)
        assert ended.returncode == 2
        assert "TXNCTL_TXN: '' is not a transaction id" in ended.stderr
        assert values(path) == []

    def test_the_whole_input_is_one_transaction(self, run: Any, path: Path) -> None:
        """However many commits it takes."""
        outcome = run(
            *("produce", "orders", "--atomic", "--batch", "3", "--print-ids"),
            stdin=b"".join(b"%d\n" % number for number in range(10)),
        )
        assert outcome.status == 0
        assert len(outcome.out.splitlines()) == 10
        messages = stored(path)
        assert [message.value for message in messages] == [b"%d" % number for number in range(10)]
        assert {str(message.txn_id) for message in messages} == {"0:1"}

    @pytest.mark.parametrize("on_error", ["stop", "skip"])
    def test_a_bad_line_in_an_atomic_input(self, run: Any, path: Path, on_error: str) -> None:
        """Stop stores nothing, and prints no ids of what is not there; skip stores the others."""
        text = b'{"value":"1"}\n{"value":"2"}\nbad\n'
        outcome = run(
            *("produce", "orders", "--atomic", "--batch", "1", "--input", "ndjson"),
            *("--on-error", on_error, "--print-ids"),
            stdin=text,
        )
        if on_error == "skip":
            assert outcome.status == 0
            assert values(path) == [b"1", b"2"]
            return
        assert (outcome.status, outcome.out) == (2, "")
        assert "Nothing is stored." in outcome.err
        assert values(path) == []
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.list_transactions()) == []

    def test_transactions_do_not_nest(self, run: Any) -> None:
        """--atomic inside a transaction is refused: its outcome would not be its own."""
        txn = run("transactions", "begin").out.strip()
        outcome = run("produce", "orders", "--atomic", "-m", "a", "--txn", txn, "-o", "json")
        assert outcome.status == 4
        assert outcome.error["code"] == "nested-transaction"

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
    def test_a_signal_leaves_nothing_of_an_atomic_input(self, start: Any, path: Path, number: int) -> None:
        """And no transaction that others would wait for, once somebody writes."""
        process = start("produce", "orders", "--atomic", "--batch", "1")
        process.stdin.write(b"a\nb\n")
        process.stdin.flush()
        level = IsolationLevel.READ_UNCOMMITTED
        wait_for(lambda: len(stored(path, level=level)) == 2, "the first lines are sent")
        assert values(path) == []
        process.send_signal(number)
        assert process.wait(20) == (-9 if number == signal.SIGKILL else 128 + number)
        if number == signal.SIGKILL:
            with Store.open(path) as store:
                store.create_producer("orders").send(b"later")
        with Store.open(path, read_only=True) as store:
            assert row_json(store.reports.list_transactions()) == []
        assert values(path) == ([b"later"] if number == signal.SIGKILL else [])

    def test_an_atomic_input_has_a_deadline(self, start: Any, run: Any, path: Path) -> None:
        """It ends while it waits for more input, says so, and leaves nothing that others would wait for."""
        process = start("produce", "orders", "--atomic", "--timeout", "500ms", "-o", "json")
        process.stdin.write(b"a\n")
        process.stdin.flush()
        assert process.wait(20) == 4
        error = json.loads(process.stderr.read().splitlines()[-1])
        assert error["code"] == "transaction-timed-out"
        assert error["message"] == (
            "the input had not ended 0.5 s after the first message: transaction 0:1 is aborted, nothing is stored"
        )
        assert "--timeout" in error["hint"]
        row = run("transactions", "show", "0:1", "-o", "json").json
        assert (row["state"], row["reason"], row["timeoutMs"]) == ("ABORTED", "timed-out", 500)
        assert values(path) == []

    def test_an_atomic_input_that_another_process_reaped(self, start: Any, run: Any, path: Path) -> None:
        """It was stopped meanwhile: the error is the same."""
        process = start("produce", "orders", "--atomic", "--timeout", "2s")
        process.stdin.write(b"a\n")
        process.stdin.flush()
        wait_for(
            lambda: len(stored(path, level=IsolationLevel.READ_UNCOMMITTED)) == 1, "the first line is sent"
        )
        process.send_signal(signal.SIGSTOP)
        let_pass(2.1, "the deadline")
        assert run("transactions", "reap").status == 0
        process.stdin.write(b"b\n")
        process.stdin.close()
        process.send_signal(signal.SIGCONT)
        assert process.wait(20) == 4
        told = process.stderr.read().decode()
        assert "had not ended 2 s after the first message: transaction 0:1 is aborted" in told
        assert told.count("0:1") == 1
        assert values(path) == []

    def test_the_deadline_of_an_atomic_input_is_that_of_transactions(
        self, start: Any, run: Any, path: Path
    ) -> None:
        """Ten minutes: readers at READ_COMMITTED wait meanwhile."""
        process = start("produce", "orders", "--atomic")
        process.stdin.write(b"a\n")
        process.stdin.flush()
        wait_for(
            lambda: len(stored(path, level=IsolationLevel.READ_UNCOMMITTED)) == 1, "the first line is sent"
        )
        assert run("transactions", "show", "0:1", "-o", "json").json["timeoutMs"] == 600_000
        process.stdin.close()
        assert process.wait(20) == 0
        assert values(path) == [b"a"]

    @pytest.mark.parametrize("mode", ["shared", "exclusive", "wait-for-exclusive", "exclusive-with-fencing"])
    def test_a_timeout_of_an_atomic_input_goes_with_every_access_mode(self, run: Any, mode: str) -> None:
        """It is that of the transaction, and of the wait for the topic if there is one."""
        words = ("--atomic", "--timeout", "5m", "--access-mode", mode)
        assert run("produce", "orders", "-m", "a", *words).status == 0
        assert run("transactions", "show", "0:1", "-o", "json").json["timeoutMs"] == 300_000

    @pytest.mark.parametrize("words", [("--timeout", "5m"), ("--atomic", "--timeout", "25h")])
    def test_a_timeout_that_cannot_be(self, run: Any, words: tuple[str, ...]) -> None:
        """It belongs to --atomic, and has the bound that all transactions have."""
        outcome = run("produce", "orders", "-m", "a", *words)
        assert outcome.status == 2
        assert "timeout" in outcome.err

    def test_a_closed_pipe_leaves_nothing_of_an_atomic_input(self, start: Any, path: Path) -> None:
        """Ids are printed after the commit: what was printed is stored."""
        process = start("produce", "orders", "--atomic", "--print-ids")
        process.stdout.close()
        process.stdin.write(b"a\n")
        process.stdin.close()
        assert process.wait(20) == 141
        assert values(path) == [b"a"]


class TestInterruption:
    """Without --atomic, whole commits stay."""

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_says_what_is_stored(self, start: Any, path: Path, number: int) -> None:
        """At once, while it waits for input."""
        process = start("produce", "orders", "--print-ids")
        process.stdin.write(b"a\nb\nhalf")
        process.stdin.flush()
        # The messages are stored before the process has counted them, and counted before their ids are printed.
        for _ in range(2):
            process.stdout.readline()
        began = time.monotonic()
        process.send_signal(number)
        assert process.wait(20) == 128 + number
        assert time.monotonic() - began < 5
        assert b"at least 2 messages are stored, the last one from line 2" in process.stderr.read()
        assert values(path) == [b"a", b"b"]

    def test_a_kill_keeps_what_was_stored(self, start: Any, path: Path) -> None:
        """Printed ids are durable."""
        process = start("produce", "orders", "--print-ids", "--batch", "10")
        process.stdin.write(b"".join(b"%d\n" % number for number in range(100)))
        process.stdin.flush()
        printed = [process.stdout.readline() for _ in range(50)]
        process.kill()
        process.wait()
        ids = [f"{message.message_id}\n".encode() for message in stored(path)]
        assert ids[: len(printed)] == printed
        assert values(path) == [b"%d" % number for number in range(len(ids))]


class TestPipes:
    """What comes from other processes."""

    def test_a_named_pipe_is_a_file(self, start: Any, path: Path, tmp_path: Path) -> None:
        """And is read as it comes."""
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        process = start("produce", "orders", str(fifo))
        with open(fifo, "wb", buffering=0) as writer:
            writer.write(b"a\n")
            wait_for(lambda: values(path) == [b"a"], "a line is stored while the pipe stays open")
            writer.write(b"b")
        assert process.wait(20) == 0
        assert values(path) == [b"a", b"b"]

    def test_a_stream_that_never_pauses_is_stored_within_a_second(self, start: Any, path: Path) -> None:
        """A line every few milliseconds leaves no pause."""
        process = start("produce", "orders")
        until = time.monotonic() + 20
        sent = 0
        while not values(path):
            assert time.monotonic() < until
            process.stdin.write(b"%d\n" % sent)
            process.stdin.flush()
            sent += 1
            let_pass(0.002, "lines have a pace")
        process.stdin.close()
        assert process.wait(20) == 0
        assert values(path) == [b"%d" % number for number in range(sent)]

    def test_an_empty_standard_input_is_no_message(self, path: Path) -> None:
        """`< /dev/null`; a closed one is refused (test_unreadable_input.py)."""
        command = f"exec {sys.executable} -m txnctl produce orders < /dev/null"
        ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
        assert ended.returncode == 0, ended
        assert values(path) == []
