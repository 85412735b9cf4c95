"""CSV as records: bytes pass through unharmed, and a line that is too long is an error, not a guess."""

from __future__ import annotations

import csv
from types import SimpleNamespace
from typing import Any

import pytest

from storage.errors import BadLine
from txnctl.input.csv_text import NEVER_CLOSED, csv_lines, csv_records


def block(*lines: bytes, too_long: int | None = None, is_unended: bool = False) -> Any:
    """Lines as they are read, in one piece."""
    return SimpleNamespace(lines=list(lines), too_long=too_long, is_unended=is_unended)


def fields_of(data: bytes) -> list[list[str]]:
    """The records of well-formed CSV."""
    records = list(csv_records(_split(data)))
    assert all(record.problem is None for record in records)
    return [record.fields for record in records]


def _split(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return [line for line in lines if line]


def test_lines_have_the_ends_of_the_input() -> None:
    """The last line of the input may have none."""
    blocks = [block(b"a,b\r", b"c"), block(b"\xff,d\r", is_unended=True)]
    assert list(csv_lines(blocks, 100, lambda: None)) == [b"a,b\r\n", b"c\n", b"\xff,d\r"]


def test_bytes_that_are_not_utf_8_come_back() -> None:
    """As the stand-ins of Python's surrogateescape."""
    (record,) = csv_records([b"\xff,\xc3\xa4\n"])
    assert record.fields == ["\udcff", "ä"]
    assert ",".join(record.fields).encode("utf-8", "surrogateescape") == b"\xff,\xc3\xa4"


@pytest.mark.parametrize(
    ("data", "records"),
    [
        (b"a\rb,c\n", [["a\rb", "c"]]),
        (b"\r,\r\n", [["\r", ""]]),
        (b"a,b\r\r\nc,d\n", [["a", "b\r"], ["c", "d"]]),
        (b'"a\rb\r\nc",d\r\n', [["a\rb\r\nc", "d"]]),
        (b'"a\r\r\nb",c', [["a\r\r\nb", "c"]]),
        (b"a,b\r", [["a", "b\r"]]),
        (b"a\0,\0\n", [["a\0", "\0"]]),
        (b"\x0b\x0c\x1c\x1d\x1e,\xc2\x85\xe2\x80\xa8\n", [["\x0b\x0c\x1c\x1d\x1e", "\x85\u2028"]]),
        (b"\x1a\x04\x1b[2J,\x7f\n", [["\x1a\x04\x1b[2J", "\x7f"]]),
        (b"\xef\xbb\xbfa,b\n\n\r\nc,\xef\xbb\xbf\n", [["a", "b"], ["c", "\ufeff"]]),
        (b"\n\r\na\n\nb\n\r\n\n", [["a"], [""], ["b"], [""], [""]]),
        (b'a\n""\n\nb', [["a"], [""], [""], ["b"]]),
    ],
    ids=ascii,
)
def test_a_line_ends_at_lf_and_all_else_is_content(data: bytes, records: list[list[str]]) -> None:
    """A CR before LF, outside quotes, belongs to the end; NUL, a further CR, VT and FF are content.

    An empty line is an empty value of a single column; before the header, and of several columns, it is nothing.
    """
    assert fields_of(data) == records


def test_a_record_may_go_over_blocks() -> None:
    """Its number is that of its first line."""
    blocks = [block(b'1,"first', b"second"), block(b'third"', b"2,x")]
    assert list(csv_records(csv_lines(blocks, 100, lambda: None))) == [
        (1, ["1", "first\nsecond\nthird"], None, [b'1,"first\n', b"second\n", b'third"\n']),
        (4, ["2", "x"], None, [b"2,x\n"]),
    ]


def test_after_a_problem_the_next_line_begins_a_record() -> None:
    """The problem has the number of the line and no fields."""
    first, bad, last = csv_records([b"a\n", b'"b"c\n', b"d\n"])
    assert (first.fields, last) == (["a"], (3, ["d"], None, [b"d\n"]))
    assert (bad.number, bad.fields) == (2, [])
    assert "expected after" in (bad.problem or "")


@pytest.mark.parametrize(
    "large", [b"1,%s\n" % (b"x" * 11), b'"%s"\n' % (b"x" * 11), b'"1\n%s\n1,2\n\n3,4",5\n' % (b"x" * 11)]
)
def test_after_a_large_field_comes_the_record_behind_it(large: bytes) -> None:
    """No line inside the quotes is taken for a record; the limit of the process stays as it was."""
    before = csv.field_size_limit()
    first, bad, last = csv_records(_split(b"a,b\n" + large + b"c,d\n"), field_max=10)
    assert (first.fields, last.fields) == (["a", "b"], ["c", "d"])
    assert (bad.number, bad.fields, bad.problem) == (2, [], "a field has more than 10 bytes")
    assert last.number == 2 + large.count(b"\n")
    assert csv.field_size_limit() == before


def test_a_large_field_without_an_end_takes_the_rest() -> None:
    """The record is said to have no end, and nothing behind it is read as a record."""
    (bad,) = csv_records(_split(b'a,"%s\n1,2\n3,4\n' % (b"x" * 11)), field_max=10)
    assert (bad.number, bad.problem) == (1, NEVER_CLOSED)


def test_a_pause_comes_after_each_block() -> None:
    """When its lines have been taken."""
    events: list[str] = []
    lines = csv_lines([block(b"a", b"b"), block(b"c")], 100, lambda: events.append("pause"))
    events.extend(line.decode().strip() for line in lines)
    assert events == ["a", "b", "pause", "c", "pause"]


def test_a_line_that_is_too_long_ends_it() -> None:
    """After what came before it: the lines behind it might stand inside quotes."""
    taken: list[bytes] = []
    with pytest.raises(BadLine, match=r"line 3 is longer than 1,000 bytes") as bad:
        taken.extend(csv_lines([block(b"a", b"b", too_long=3), block(b"c")], 1000, lambda: None))
    assert bad.value.details == {"lineNumber": 3}
    assert bad.value.hint == "Is a closing quote missing?"
