"""CSV as text: bytes pass through unharmed, and a line that is too long is an error, not a guess."""

from __future__ import annotations

import csv
from types import SimpleNamespace
from typing import Any

import pytest

from storage.errors import BadLine
from txnctl.input.csv_text import csv_text


def block(*lines: bytes, too_long: int | None = None) -> Any:
    """Lines as they are read, in one piece."""
    return SimpleNamespace(lines=list(lines), too_long=too_long)


def test_lines_have_their_ends_and_bytes_come_back() -> None:
    """Also those that are not UTF-8, and a carriage return."""
    lines = list(csv_text([block(b"a,b\r", b"\xff,\xc3\xa4")], 100, lambda: None))
    assert lines == ["a,b\r\n", "\udcff,ä\n"]
    assert lines[1].encode("utf-8", "surrogateescape") == b"\xff,\xc3\xa4\n"


def test_a_record_may_go_over_blocks() -> None:
    """As the csv module reads it."""
    blocks = [block(b'1,"first', b"second"), block(b'third"', b"2,x")]
    assert list(csv.reader(csv_text(blocks, 100, lambda: None))) == [
        ["1", "first\nsecond\nthird"],
        ["2", "x"],
    ]


def test_a_pause_comes_after_each_block() -> None:
    """When its lines have been taken."""
    events: list[str] = []
    lines = csv_text([block(b"a", b"b"), block(b"c")], 100, lambda: events.append("pause"))
    events.extend(line.strip() for line in lines)
    assert events == ["a", "b", "pause", "c", "pause"]


def test_a_line_that_is_too_long_ends_it() -> None:
    """After what came before it: the lines behind it might stand inside quotes."""
    taken: list[str] = []
    with pytest.raises(BadLine, match=r"line 3 is longer than 1,000 bytes") as bad:
        taken.extend(csv_text([block(b"a", b"b", too_long=3), block(b"c")], 1000, lambda: None))
    assert bad.value.details == {"lineNumber": 3}
    assert bad.value.hint == "Is a closing quote missing?"
