"""`txnctl produce`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from tests.txnctl.commands.produce.produce_steps import stored, values
from txnctl.commands.produce.command import FIELDS
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestGivenMessages:
    """-m and --null."""

    def test_each_text_is_a_message_in_order(self, run: Any, path: Path) -> None:
        """One commit, a summary on standard error, nothing on standard output."""
        outcome = run("produce", "orders", "-m", "a", "-m", "-100", "-m", "")
        assert (outcome.status, outcome.out) == (0, "")
        assert outcome.err == "txnctl: stored 3 messages in orders: 1:0:0 to 1:0:2\n"
        assert values(path) == [b"a", b"-100", b""]

    def test_no_input_is_read(self, run: Any, path: Path) -> None:
        """What stands on standard input is somebody else's."""
        assert run("produce", "orders", "-m", "a", stdin=b"not mine\n").status == 0
        assert values(path) == [b"a"]

    def test_null_is_a_tombstone_and_an_empty_text_is_not(self, run: Any, path: Path) -> None:
        """`null` is not ""."""
        run("produce", "orders", "--null", "-k", "B1")
        run("produce", "orders", "-m", "", "-k", "")
        assert [(message.value, message.key) for message in stored(path)] == [(None, b"B1"), (b"", b"")]

    def test_key_properties_and_event_time(self, run: Any, path: Path) -> None:
        """They are every message's."""
        run(
            *("produce", "orders", "-m", "a", "-m", "b", "-k", "B1", "-p", "p=v", "-p", "q=a=b"),
            *("--event-time", "2024-05-01T10:00:00Z"),
        )
        for message in stored(path):
            assert message.key == b"B1"
            assert message.properties == {"p": "v", "q": "a=b"}
            assert message.event_time == 1714557600000

    def test_delivery_times(self, run: Any, path: Path) -> None:
        """A delay counts from the send, a time is taken as it is; both at once are refused."""
        before_ms = time.time_ns() // 1_000_000
        run("produce", "orders", "-m", "a", "--deliver-after", "1h")
        run("produce", "orders", "-m", "b", "-m", "c", "--deliver-at", "2024-05-01T10:00:00Z")
        late, *at = [message.deliver_at for message in stored(path)]
        assert before_ms + 3_600_000 <= (late or 0) <= time.time_ns() // 1_000_000 + 3_600_001
        assert at == [1714557600000] * 2
        both = run("produce", "orders", "-m", "d", "--deliver-after", "1h", "--deliver-at", "2024-05-01")
        assert (both.status, "--deliver-at" in both.err) == (2, True)
        assert len(stored(path)) == 3

    def test_bytes_of_the_command_line_arrive_as_they_are(self, path: Path) -> None:
        """Whatever the locale makes of them."""
        words = [b"produce", b"orders", b"-m", b"\xff\xfe", b"-k", b"\x80"]
        subprocess.run([sys.executable, "-m", "txnctl", *words], check=True, capture_output=True)
        assert [(message.value, message.key) for message in stored(path)] == [(b"\xff\xfe", b"\x80")]

    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            (("-m", "a", "--null"), "--null"),
            (("file", "-m", "a"), "FILE"),
            (("-m", "a", "--input", "csv"), "--input"),
            (("-m", "a", "--on-error", "skip"), "--on-error"),
            (("--null", "--batch", "2"), "--batch"),
            (("-m", "a", "--sequence-id", "3"), "--producer"),
        ],
    )
    def test_options_that_contradict_each_other_are_refused(
        self, run: Any, path: Path, words: Sequence[str], problem: str
    ) -> None:
        """Exit 2, and nothing is stored."""
        outcome = run("produce", "orders", *words)
        assert outcome.status == 2
        assert problem in outcome.err
        assert values(path) == []

    def test_a_message_that_is_too_large_is_named(self, run: Any, path: Path) -> None:
        """What comes before it is stored, and that is said."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("storage.topic.batching.MESSAGE_BYTES_MAX", 100_000)
            outcome = run("produce", "orders", "-m", "a", "-m", "x" * 100_001, "-m", "c", "-o", "json")
        assert outcome.status == 2
        assert outcome.error["code"] == "message-too-large"
        assert outcome.error["message"].startswith("message 2:")
        assert outcome.error["details"]["lastStoredLine"] == 1
        assert values(path) == [b"a"]


class TestOutput:
    """Summary, ids, rows."""

    def test_ids_are_printed_on_request(self, run: Any) -> None:
        """--print-ids and -o name alike, one a line."""
        assert run("produce", "orders", "-m", "a", "-m", "b", "--print-ids").out == "1:0:0\n1:0:1\n"
        assert run("produce", "orders", "-m", "c", "-o", "name").out == "1:1\n"

    def test_the_row(self, run: Any) -> None:
        """One object with declared fields; the ids are in it where they were asked for."""
        outcome = run("produce", "orders", "--producer", "web", "-o", "json", "--print-ids", stdin=b"a\nb\n")
        assert outcome.json == {
            "topic": "persistent://public/default/orders",
            "name": "orders",
            "messages": 2,
            "duplicates": 0,
            "skipped": 0,
            "firstMessageId": "1:0:0",
            "lastMessageId": "1:0:1",
            "producerName": "web",
            "accessMode": "Shared",
            "topicEpoch": None,
            "lastSequenceId": 1,
            "txnId": None,
            "messageIds": ["1:0:0", "1:0:1"],
        }
        assert not undeclared(outcome.json, FIELDS)
        assert outcome.err == ""

    def test_no_messages_are_a_success(self, run: Any) -> None:
        """Unknown is null."""
        row = run("produce", "orders", "-o", "ndjson").json
        assert (row["messages"], row["firstMessageId"], row["lastMessageId"]) == (0, None, None)
        assert run("produce", "orders", "--atomic").err == "txnctl: stored 0 messages in orders\n"

    def test_quiet(self, run: Any) -> None:
        """A loop in a script need not say a line a message."""
        outcome = run("produce", "orders", "-m", "a", "-q")
        assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


class TestTopics:
    """A topic is created by name only."""

    def test_a_missing_topic_is_an_error(self, run: Any) -> None:
        """With the way to create it."""
        outcome = run("produce", "new", "-m", "a")
        assert outcome.status == 3
        assert "topics create new" in outcome.err

    def test_create(self, run: Any, path: Path) -> None:
        """With --create it is created once."""
        assert run("produce", "new", "-m", "a", "--create").status == 0
        assert run("produce", "new", "-m", "b", "--create").status == 0
        assert values(path, "new") == [b"a", b"b"]

    @pytest.mark.parametrize(
        "words",
        [
            ("--input", "ndjson"), ("--input", "ndjson", "--atomic"), ("--input", "csv"),
            ("--input", "ndjson", "--access-mode", "Exclusive"), ("--input", "ndjson", "--producer", "p"),
        ],
        ids=" ".join,
    )  # fmt: skip
    def test_a_refused_input_creates_no_topic(self, run: Any, path: Path, words: tuple[str, ...]) -> None:
        """The first line is bad: nothing is left, neither a topic nor a session."""
        assert run("produce", "new", "--create", *words, stdin=b'bad"\n').status == 2
        with Store.open(path, read_only=True) as store:
            assert store.topics() == ["orders"]

    def test_an_ended_transaction_creates_no_topic(self, run: Any, path: Path) -> None:
        """A refusal that is found in the commit leaves nothing either."""
        txn = run("transactions", "begin").out.strip()
        run("transactions", "commit", txn)
        for words in (("-m", "a"), ("--access-mode", "Exclusive", "-m", "a")):
            assert run("produce", "new", "--create", "--txn", txn, *words).status == 4
        with Store.open(path, read_only=True) as store:
            assert store.topics() == ["orders"]

    def test_an_empty_input_creates_the_topic(self, run: Any, path: Path) -> None:
        """The command has succeeded, and a topic was asked for."""
        assert run("produce", "new", "--create", stdin=b"").status == 0
        with Store.open(path, read_only=True) as store:
            assert store.topics() == ["new", "orders"]

    def test_a_file_that_cannot_be_read_creates_no_topic(self, run: Any, path: Path, tmp_path: Path) -> None:
        """It is looked at first."""
        for name in (tmp_path / "missing", tmp_path):
            outcome = run("produce", "new", str(name), "--create")
            assert outcome.status == 2
            assert "cannot read" in outcome.err
        with Store.open(path, read_only=True) as store:
            assert store.topics() == ["orders"]
