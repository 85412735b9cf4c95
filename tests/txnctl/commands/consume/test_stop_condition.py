"""Stop condition: `txnctl/commands/consume/stop_condition.py`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.consume.consume_steps import backlog, send, send_batch
from tests.txnctl.processes import sleeps_with_store
from tests.waiting import let_pass, wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


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
        wait_for(lambda: sleeps_with_store(process.pid, path), "the command waits for messages")
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
        assert process.wait(20) == 0

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

    def test_a_follower_does_not_burn_a_core(self, start: Any, path: Path) -> None:
        """Over a second of standing still it uses a fraction of one."""
        send(path, b"started")
        process = start("consume", "orders", "-f", "-o", "value")
        assert process.stdout.readline() == b"started\n"

        def used() -> float:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        if not Path("/proc/self/stat").exists():
            return
        before = used()
        let_pass(1, "a stretch of waiting, whose processor time is measured")
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
        wait_for(lambda: sleeps_with_store(process.pid, path), "the command waits for messages")
        send(path, b"a")
        assert process.wait(20) == 0
        assert process.stdout.read() == b"a\n"
