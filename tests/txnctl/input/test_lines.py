"""Lines: `txnctl/input/lines.py`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from storage.limits import MESSAGE_BYTES_MAX
from tests.txnctl.commands.produce.produce_steps import values
from txnctl.input import lines as input_lines, source
from txnctl.input.lines import LineReader
from txnctl.input.source import Source

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestLines:
    """The default input."""

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
