"""Exec: `txnctl/commands/consume/exec.py`."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.consume.consume_steps import backlog, send, send_batch
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


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

    def test_a_message_that_goes_to_the_dead_letter_topic_is_said(self, run: Any, path: Path) -> None:
        """It does not come again; what does is counted beside it, and the hint brings dead letters back."""
        send_batch(path, 2)
        words = (*self.WORDS, "false", "--on-error", "retry", "--retry-delay", "0s", "-n", "4")
        outcome = run(*words, "--max-redeliver-count", "1")
        assert outcome.status == 1
        assert outcome.err.count("the message comes again in 0 s") == 2
        assert outcome.err.count("the message goes to the dead-letter topic orders-s-DLQ in 0 s") == 2
        assert (
            "the command failed 4 times; 2 messages go to the dead-letter topic orders-s-DLQ" in outcome.err
        )
        assert "hint: Mend the cause; then `txnctl subscriptions redrive orders s`." in outcome.err
        send_batch(path, 1)
        outcome = run(*self.WORDS, "false", "--on-error", "retry", "-n", "1")
        assert "the command failed 1 time; 1 message comes again" in outcome.err

    def test_a_failure_that_ends_in_the_dead_letter_topic(self, run: Any, path: Path) -> None:
        """Also where the first failure ends the command."""
        send_batch(path, 1)
        outcome = run(*self.WORDS, "false", "--max-redeliver-count", "0")
        assert "the message goes to the dead-letter topic orders-s-DLQ" in outcome.err
        assert run("consume", "orders", "-s", "s").out == ""
        assert run("consume", "orders-s-DLQ", "-o", "value").out == "0\n"

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
        both_at_work = f"[ $(ls -d {tmp_path}/worker-* | wc -l) = 2 ]"
        command = f"touch {tmp_path}/worker-$PPID; until {both_at_work}; do sleep 0.02; done; cat"
        workers = [start(*self.WORDS, command, "--subscription-type", "shared") for _ in range(2)]
        assert [worker.wait(60) for worker in workers] == [0, 0]
        outs = [worker.stdout.read().decode() for worker in workers]
        assert sorted("".join(outs)) == list("0123")
        assert all(outs)

    def test_a_signal_ends_the_command_too(self, start: Any, path: Path, tmp_path: Path) -> None:
        """SIGINT, and the message is not acknowledged; other signals: test_stop_signals.py."""
        send(path, b"a")
        process = start(*self.WORDS, f"echo $$ > {tmp_path}/pid; exec sleep 60")
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the command runs")
        child = int((tmp_path / "pid").read_text())
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
        assert backlog(path) == 1

    @pytest.mark.parametrize(
        ("what", "reason"),
        [
            ({"key": b"k" * 100_001}, "100,001 bytes of key fit no variable"),
            ({"key": b"\xff" * 75_003}, "100,004 bytes of key base64 fit no variable"),
            ({"properties": {"p": "v" * 100_000}}, "100,008 bytes of properties fit no variable"),
        ],
    )
    def test_what_fits_no_variable_fails(
        self, run: Any, path: Path, tmp_path: Path, what: Any, reason: str
    ) -> None:
        """The command does not run without a part of the message; the message is given back, with the reason."""
        send(path, b"a", **what)
        outcome = run(*self.WORDS, f"touch {tmp_path}/ran", "-o", "json")
        assert outcome.status == 126
        assert reason in outcome.error["message"]
        assert outcome.error["details"] == {"status": 126, "done": 0, "failed": 1}
        assert not (tmp_path / "ran").exists()
        assert backlog(path) == 1

    def test_what_fits_no_variable_goes_to_the_dead_letter_topic(self, run: Any, path: Path) -> None:
        """By the rules of a command that fails; the message after it is handled."""
        send(path, b"a", key=b"k" * 100_001)
        send(path, b"b", key=b"k" * 100_000)
        words = ("--on-error", "retry", "--retry-delay", "0s", "--max-redeliver-count", "0")
        outcome = run(*self.WORDS, "cat", *words)
        assert outcome.status == 126
        assert "message 1:0: 100,001 bytes of key" in outcome.err
        assert "goes to the dead-letter topic orders-s-DLQ" in outcome.err
        assert [row["value"] for row in run("consume", "orders-s-DLQ", "-o", "ndjson").rows] == ["a"]
        assert backlog(path) == 0

    def test_what_the_system_refuses_fails(self, run: Any, path: Path, monkeypatch: Any) -> None:
        """An environment that is too large as a whole: E2BIG of the kernel."""
        for number in range(30):
            monkeypatch.setenv(f"FILLER_{number}", "x" * 65_000)
        send(path, b"a", key=b"k" * 90_000, properties={"p": "v" * 90_000})
        outcome = run(*self.WORDS, "true", "-o", "json")
        assert outcome.status == 126
        assert "Argument list too long" in outcome.error["message"]
        assert backlog(path) == 1
