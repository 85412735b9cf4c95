"""`txnctl produce`: every input and option, what is stored when a line is bad, and what an interruption leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, IsolationLevel, Message, Store
from storage.limits import MESSAGE_BYTES_MAX
from tests.row_json import row_json
from tests.txnctl.processes import wait_for
from txnctl.commands.produce.command import FIELDS
from txnctl.input import lines as input_lines, source
from txnctl.input.lines import LineReader
from txnctl.input.source import Source
from txnctl.output.field import undeclared

pytestmark = pytest.mark.usefixtures("path")
TOPICS = ("orders",)


def stored(
    path: Path, topic: str = "orders", level: IsolationLevel = IsolationLevel.READ_COMMITTED
) -> list[Message]:
    """The messages of the topic."""
    with Store.open(path, read_only=True) as store:
        return list(store.reader(topic, start=EARLIEST, isolation_level=level))


def values(path: Path, topic: str = "orders") -> list[bytes | None]:
    return [message.value for message in stored(path, topic)]


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

    def test_a_file_that_cannot_be_read_creates_no_topic(self, run: Any, path: Path, tmp_path: Path) -> None:
        """It is looked at first."""
        for name in (tmp_path / "missing", tmp_path):
            outcome = run("produce", "new", str(name), "--create")
            assert outcome.status == 2
            assert "cannot read" in outcome.err
        with Store.open(path, read_only=True) as store:
            assert store.topics() == ["orders"]


class TestLines:
    """The default input."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (b"", []),
            (b"\n", [b""]),
            (b"a", [b"a"]),
            (b"a\n", [b"a"]),
            (b"a\n\nb", [b"a", b"", b"b"]),
            (b"a\r\nb\r\n", [b"a", b"b"]),
            (b"a\rb\nc\r", [b"a\rb", b"c\r"]),
            (b"\xff\x00\n\xe2\x80\xa8\x0bx\n", [b"\xff\x00", b"\xe2\x80\xa8\x0bx"]),
        ],
    )
    def test_a_line_is_a_message(
        self, run: Any, path: Path, tmp_path: Path, text: bytes, expected: list[bytes]
    ) -> None:
        """LF or CRLF ends it, the last one needs no end; from a pipe and from a file."""
        assert run("produce", "orders", stdin=text).status == 0
        assert values(path) == expected
        file = tmp_path / "lines"
        file.write_bytes(text)
        assert run("produce", "orders", str(file)).status == 0
        assert values(path) == expected * 2

    def test_a_dash_is_standard_input(self, run: Any, path: Path) -> None:
        """As everywhere."""
        run("produce", "orders", "-", stdin=b"a\n")
        assert values(path) == [b"a"]

    def test_batch_bounds_a_commit(self, run: Any, path: Path) -> None:
        """An entry belongs to one commit."""
        run("produce", "orders", "--batch", "2", stdin=b"a\nb\nc\nd\ne\n")
        assert [message.entry.count for message in stored(path)] == [2, 2, 2, 2, 1]

    def test_lines_of_any_length_survive_any_cutting(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Blocks of a few bytes have the same lines as the whole."""
        text = b"one\r\ntwo\n\n" + b"x" * 50 + b"\nlast\r"
        file = tmp_path / "lines"
        file.write_bytes(text)
        for size in range(1, 20):
            monkeypatch.setattr(source, "BLOCK_BYTES", size)
            monkeypatch.setattr(input_lines, "BLOCK_BYTES", size)
            blocks = list(LineReader(Source.open(str(file)), 1000))
            lines = [line for block in blocks for line in block.lines]
            assert lines == [b"one", b"two", b"", b"x" * 50, b"last\r"]
            numbers = [block.first + place for block in blocks for place in range(len(block.lines))]
            assert numbers == [1, 2, 3, 4, 5]
            assert all(block.too_long is None for block in blocks)

    def test_a_line_that_is_too_long_is_never_held(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is named, and the lines around it are there."""
        file = tmp_path / "lines"
        file.write_bytes(b"a\n" + b"x" * 100 + b"\nb\n" + b"y" * 100)
        for size in range(1, 12):
            monkeypatch.setattr(source, "BLOCK_BYTES", size)
            monkeypatch.setattr(input_lines, "BLOCK_BYTES", size)
            blocks = list(LineReader(Source.open(str(file)), 20))
            assert [line for block in blocks for line in block.lines] == [b"a", b"b"]
            assert [block.too_long for block in blocks if block.too_long] == [2, 4]

    def test_a_message_of_100_mb_is_refused_in_bounded_memory(self, start: Any, path: Path) -> None:
        """Exit 2 before it has been read: the writer of the pipe is told by a closed pipe."""
        for words in (("lines",), ("raw",), ("ndjson",)):
            process = start("produce", "orders", "--input", *words)
            taken = 0
            with suppress(BrokenPipeError):
                for _ in range(100):
                    process.stdin.write(b"x" * 1_000_000)
                    taken += 1
            assert process.wait(30) == 2
            assert b"larger than a message may be" in process.stderr.read()
            assert taken < 60
        assert values(path) == []

    def test_the_largest_message_is_accepted(self, run: Any, path: Path) -> None:
        """5 MiB, as a line, raw, and as NDJSON at its longest: each byte written as an escape."""
        value = b"\x01" * MESSAGE_BYTES_MAX
        assert run("produce", "orders", stdin=value + b"\n").status == 0
        assert run("produce", "orders", "--input", "raw", stdin=value).status == 0
        line = b'{"value":"' + b"\\u0001" * MESSAGE_BYTES_MAX + b'"}'
        assert run("produce", "orders", "--input", "ndjson", stdin=line).status == 0
        assert values(path) == [value] * 3
        assert run("produce", "orders", "--input", "raw", stdin=value + b"x").status == 2


class TestNdjson:
    """Objects."""

    def test_an_object_is_a_message(self, run: Any, path: Path) -> None:
        """Empty lines and CR are no trouble; what --key and --property give is for those that bring none."""
        text = (
            b'{"value":"a","key":"k","properties":{"p":"own"},"eventTimeMs":5,"ignored":1}\r\n\n'
            b'{"valueBase64":"/w=="}\n{"value":null}'
        )
        words = ("--input", "ndjson", "-k", "common", "-p", "p=common", "-p", "q=x", "--event-time", "7")
        assert run("produce", "orders", *words, stdin=text).status == 0
        assert [(m.value, m.key, m.properties, m.event_time) for m in stored(path)] == [
            (b"a", b"k", {"p": "own", "q": "x"}, 5),
            (b"\xff", b"common", {"p": "common", "q": "x"}, 7),
            (None, b"common", {"p": "common", "q": "x"}, 7),
        ]

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            (b"nonsense", "not JSON"),
            (b'{"valeu":"a"}', "value"),
            (b'{"value":"a","eventTimeMs":-1}', "eventTimeMs"),
            (b'{"value":"a","eventTimeMs":9223372036854775808}', "eventTimeMs"),
            (
                b'{"value":"a","properties":{' + b",".join(b'"%d":""' % n for n in range(1025)) + b"}}",
                "properties",
            ),
        ],
    )
    def test_the_bad_line_is_named(self, run: Any, path: Path, line: bytes, why: str) -> None:
        """By its number, with what is wrong and the last line that is stored."""
        text = b'{"value":"1"}\n{"value":"2"}\n' + line + b'\n{"value":"4"}\n'
        outcome = run("produce", "orders", "--input", "ndjson", "-o", "json", stdin=text)
        assert (outcome.status, outcome.out) == (2, "")
        assert outcome.error["code"] == "bad-line"
        assert outcome.error["message"].startswith("line 3: ")
        assert why in outcome.error["message"]
        assert outcome.error["message"].endswith("2 messages are stored, the last one from line 2.")
        assert outcome.error["details"] == {"lineNumber": 3, "stored": 2, "lastStoredLine": 2}
        assert values(path) == [b"1", b"2"]

    def test_line_5000_of_10000(self, run: Any, path: Path) -> None:
        """Everything before it is stored, nothing after it."""
        lines = [b'{"value":"%d"}' % number for number in range(1, 10_001)]
        lines[4999] = b'{"value":'
        outcome = run("produce", "orders", "--input", "ndjson", "--batch", "700", stdin=b"\n".join(lines))
        assert outcome.status == 2
        assert "line 5000: " in outcome.err
        assert "4,999 messages are stored, the last one from line 4999" in outcome.err
        assert values(path) == [b"%d" % number for number in range(1, 5000)]

    def test_skip_reports_each_and_stores_the_others(self, run: Any, path: Path) -> None:
        """Exit 0: that was asked for."""
        text = b'{"value":"1"}\nbad\n{"value":"3","eventTimeMs":-1}\n{"value":"4"}\n'
        outcome = run("produce", "orders", "--input", "ndjson", "--on-error", "skip", stdin=text)
        assert outcome.status == 0
        assert "line 2: " in outcome.err
        assert "line 3: " in outcome.err
        assert "stored 2 messages" in outcome.err
        assert "2 lines skipped" in outcome.err
        assert values(path) == [b"1", b"4"]

    def test_skip_with_lines_that_are_too_large(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those that were read and those that were not held."""
        monkeypatch.setattr("storage.topic.batching.MESSAGE_BYTES_MAX", 100)
        monkeypatch.setattr("txnctl.commands.produce.input.MESSAGE_BYTES_MAX", 1000)
        text = b"a\n" + b"b" * 200 + b"\nc\n" + b"d" * 2000 + b"\ne"
        monkeypatch.setattr(source, "BLOCK_BYTES", 256)
        monkeypatch.setattr(input_lines, "BLOCK_BYTES", 256)
        outcome = run("produce", "orders", "--on-error", "skip", "-o", "json", stdin=text)
        assert (outcome.json["messages"], outcome.json["skipped"]) == (3, 2)
        assert values(path) == [b"a", b"c", b"e"]

    def test_nothing_before_the_first_bad_line(self, run: Any) -> None:
        """It is said, too."""
        outcome = run("produce", "orders", "--input", "ndjson", stdin=b"bad\n")
        assert outcome.status == 2
        assert "Nothing was stored before it." in outcome.err


class TestCsv:
    """Records under a header."""

    def test_columns_go_by_their_names(self, run: Any, path: Path) -> None:
        """In any order; quotes hold commas, line ends and quotes; what is empty is none."""
        text = (
            b"\xef\xbb\xbfkey,value,properties.source,eventTime,properties.n\r\n"
            b'B1,"a, ""b""\r\nc",web,2024-05-01T10:00:00Z,1\r\n'
            b"\r\n"
            b",,,,\r\n"
            b"B\xff,\xe2\x82\xac,,1714557600000,2"
        )
        assert run("produce", "orders", "--input", "csv", stdin=text).status == 0
        assert [(m.key, m.value, m.properties, m.event_time) for m in stored(path)] == [
            (b"B1", b'a, "b"\r\nc', {"source": "web", "n": "1"}, 1714557600000),
            (None, b"", {}, None),
            (b"B\xff", b"\xe2\x82\xac", {"n": "2"}, 1714557600000),
        ]

    @pytest.mark.parametrize(
        ("header", "why"),
        [
            (b"key,text", "'text'"),
            (b"key", "value"),
            (b"value,key,value", "twice"),
            (b"value,eventTime,eventTimeMs", "say the same"),
            (b'"value', "end of data"),
            (b"value,properties.\xff", "UTF-8"),
        ],
    )
    def test_a_bad_header_is_refused(self, run: Any, path: Path, header: bytes, why: str) -> None:
        """Whatever --on-error says: nothing under it means anything."""
        outcome = run("produce", "orders", "--input", "csv", "--on-error", "skip", stdin=header + b"\na,b\n")
        assert outcome.status == 2
        assert "the header" in outcome.err
        assert why in outcome.err
        assert values(path) == []

    @pytest.mark.parametrize(
        ("record", "why"),
        [
            (b"a", "1 fields"),
            (b"a,b,c,d", "4 fields"),
            (b"a,yesterday,", "not a time"),
            (b"a,,\xff", "UTF-8"),
            (b'"a"b,,', "expected after"),
        ],
    )
    def test_a_bad_record_is_named_by_its_first_line(
        self, run: Any, path: Path, record: bytes, why: str
    ) -> None:
        """Records before it are stored; with skip, those after it too."""
        text = b'value,eventTime,properties.p\n"one\nmore",,\n' + record + b"\nlast,,\n"
        outcome = run("produce", "orders", "--input", "csv", stdin=text)
        assert outcome.status == 2
        assert "line 4: " in outcome.err
        assert why in outcome.err
        assert values(path) == [b"one\nmore"]
        outcome = run("produce", "orders", "--input", "csv", "--on-error", "skip", stdin=text)
        assert outcome.status == 0
        assert "1 line skipped" in outcome.err
        assert values(path) == [b"one\nmore"] * 2 + [b"last"]

    def test_a_quote_that_is_never_closed(self, run: Any, path: Path) -> None:
        """The record it begins in is named, however far it reaches."""
        text = b'value\na\n"b\n' + b"more\n" * 1000
        outcome = run("produce", "orders", "--input", "csv", stdin=text)
        assert outcome.status == 2
        assert "line 3: " in outcome.err
        assert values(path) == [b"a"]

    def test_complete_records_do_not_wait_for_the_next(self, start: Any, path: Path) -> None:
        """Also when what has come ends inside quotes."""
        process = start("produce", "orders", "--input", "csv")
        process.stdin.write(b'value\na\n"b\n')
        process.stdin.flush()
        wait_for(lambda: values(path) == [b"a"], "a complete record is stored")
        process.stdin.write(b'c"\n')
        process.stdin.close()
        assert process.wait(20) == 0
        assert values(path) == [b"a", b"b\nc"]


class TestRaw:
    """The whole input is one message."""

    def test_all_bytes_as_they_are(self, run: Any, path: Path) -> None:
        """Nothing is a message too: an empty one."""
        run("produce", "orders", "--input", "raw", stdin=b"a\r\n\xff\0\n")
        run("produce", "orders", "--input", "raw", stdin=b"")
        assert values(path) == [b"a\r\n\xff\0\n", b""]


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

    def test_an_empty_variable_is_an_unset_one(
        self, run: Any, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As everywhere."""
        monkeypatch.setenv("TXNCTL_TXN", "")
        assert run("produce", "orders", "-m", "a").status == 0
        assert values(path) == [b"a"]

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
            "the input was not at its end 0.5 s after its first message: transaction 0:1 is aborted, nothing is stored"
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
        time.sleep(2.1)
        assert run("transactions", "reap").status == 0
        process.stdin.write(b"b\n")
        process.stdin.close()
        process.send_signal(signal.SIGCONT)
        assert process.wait(20) == 4
        told = process.stderr.read().decode()
        assert "was not at its end 2 s after its first message: transaction 0:1 is aborted" in told
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
        process = start("produce", "orders")
        process.stdin.write(b"a\nb\nhalf")
        process.stdin.flush()
        wait_for(lambda: len(values(path)) == 2, "whole lines are stored")
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
            time.sleep(0.002)
        process.stdin.close()
        assert process.wait(20) == 0
        assert values(path) == [b"%d" % number for number in range(sent)]

    def test_a_closed_standard_input_is_an_empty_one(self, path: Path) -> None:
        """As with `<&-`."""
        command = f"exec {sys.executable} -m txnctl produce orders <&-"
        ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
        assert ended.returncode == 0, ended
        assert values(path) == []
