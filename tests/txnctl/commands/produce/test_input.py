"""Input: `txnctl/commands/produce/input.py`."""

from __future__ import annotations

import os
from pathlib import Path
from select import select
from threading import Thread
from typing import Any

import pytest

from tests.txnctl.commands.produce.produce_steps import stored, values
from tests.waiting import wait_for
from txnctl.input import lines as input_lines, source

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


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
            (b"a\r\r\n\r\n\r\r", [b"a\r", b"", b"\r\r"]),
            (b"\0\n\x0b\n\x0c\x1c\x1d\x1e\x85\n", [b"\0", b"\x0b", b"\x0c\x1c\x1d\x1e\x85"]),
            (b"\x1a\x04\x1b[2J\n\x7f", [b"\x1a\x04\x1b[2J", b"\x7f"]),
        ],
    )
    def test_a_line_is_a_message(
        self, run: Any, start: Any, path: Path, tmp_path: Path, text: bytes, expected: list[bytes]
    ) -> None:
        """LF or CRLF ends it, the last one needs no end, all else is content; from a pipe and from a file."""
        process = start("produce", "orders")
        process.communicate(text, 30)
        assert process.returncode == 0
        assert values(path) == expected
        file = tmp_path / "lines"
        file.write_bytes(text)
        assert run("produce", "orders", str(file)).status == 0
        assert values(path) == expected * 2

    def test_batch_bounds_a_commit(self, run: Any, path: Path) -> None:
        """An entry belongs to one commit."""
        run("produce", "orders", "--batch", "2", stdin=b"a\nb\nc\nd\ne\n")
        assert [message.entry.count for message in stored(path)] == [2, 2, 2, 2, 1]

    def test_a_line_of_the_greatest_length_may_end_with_crlf(self) -> None:
        """Also where the pipe hands out CR and LF apart."""
        reading, writing = os.pipe()
        with open(reading, "rb") as pipe:
            os.write(writing, b"x" * 9 + b"y\r")
            blocks = iter(input_lines.LineReader(source.Source(pipe.fileno(), None, "a pipe"), 10))
            Thread(target=_write_later, args=(pipe.fileno(), writing, b"\nz")).start()
            taken = list(blocks)
        assert [line for block in taken for line in block.lines] == [b"x" * 9 + b"y", b"z"]
        assert all(block.too_long is None for block in taken)


def _write_later(reading: int, writing: int, data: bytes) -> None:
    """Write once the pipe is empty, which is once all before was read."""
    wait_for(lambda: not select([reading], [], [], 0)[0], "the pipe is empty")
    os.write(writing, data)
    os.close(writing)


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

    def test_a_delivery_time_of_its_own(self, run: Any, path: Path) -> None:
        """--deliver-at is for lines that bring none; what `consume` prints comes back with the same time."""
        text = b'{"value":"a","deliveryTimeMs":5}\n{"value":"b","deliveryTimeMs":null}'
        assert run("produce", "orders", "--input", "ndjson", "--deliver-at", "7", stdin=text).status == 0
        assert [m.deliver_at for m in stored(path)] == [5, 7]
        printed = run("consume", "orders", "--from", "earliest", "-o", "ndjson").out
        assert run("produce", "orders", "--input", "ndjson", stdin=printed.encode()).status == 0
        assert [m.deliver_at for m in stored(path)] == [5, 7] * 2

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            (b"nonsense", "not JSON"),
            (b'{"valeu":"a"}', "value"),
            (b'{"value":"a","eventTimeMs":-1}', "eventTimeMs"),
            (b'{"value":"a","eventTimeMs":9223372036854775808}', "eventTimeMs"),
            (b'{"value":"a","deliveryTimeMs":-1}', "deliveryTimeMs"),
            (b'{"value":"a","deliveryTimeMs":"soon"}', "deliveryTimeMs"),
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


class TestRaw:
    """The whole input is one message."""

    def test_all_bytes_as_they_are(self, run: Any, path: Path) -> None:
        """Nothing is a message too: an empty one."""
        run("produce", "orders", "--input", "raw", stdin=b"a\r\n\xff\0\n")
        run("produce", "orders", "--input", "raw", stdin=b"")
        assert values(path) == [b"a\r\n\xff\0\n", b""]
