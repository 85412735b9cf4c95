"""Tables for people: columns in line, numbers to the right, long texts folded where the terminal is narrow."""

from __future__ import annotations

from txnctl.output.field import Field
from txnctl.output.table import aligned, folded, list_table, object_table

FIELDS = (
    Field("name", "id", "A name.", heading="NAME"),
    Field("count", "integer", "A number.", heading="COUNT"),
    Field("note", "text", "A text.", heading="NOTE"),
    Field("hidden", "text", "Not in tables.", heading=""),
)
ROWS = [
    {"name": "a", "count": 5, "note": "x", "hidden": "h"},
    {"name": "long", "count": 1234, "note": None, "hidden": "h"},
]


def test_a_row_is_a_line_under_headings() -> None:
    """Numbers to the right; what has no heading is not there; unknown is a dash."""
    assert list_table(ROWS, FIELDS).splitlines() == ["NAME  COUNT  NOTE", "a         5  x", "long  1,234  -"]


def test_no_rows_are_no_table() -> None:
    """Not even headings."""
    assert list_table([], FIELDS) == ""
    assert aligned(["A"], [], ["left"]) == ""


def test_an_object_is_a_line_a_field() -> None:
    """Its headings in small letters."""
    assert object_table(ROWS[1], FIELDS).splitlines() == ["name   long", "count  1,234", "note   -"]


def test_only_texts_are_folded_and_only_as_far_as_needed() -> None:
    """The widest first; never narrower than 20 columns."""
    text = "word " * 12
    cells = folded(["ID", "TEXT"], [["x" * 30, text.strip()]], [False, True], 60)
    assert cells[0][0] == "x" * 30
    lines = cells[0][1].split("\n")
    assert len(lines) > 1
    assert max(map(len, lines)) <= 28
    narrow = folded(["ID", "TEXT"], [["x" * 30, text.strip()]], [False, True], 10)
    assert 15 <= max(map(len, narrow[0][1].split("\n"))) <= 20


def test_what_fits_is_left_as_it_is() -> None:
    """The same cells, not a copy."""
    cells = [["a", "b"]]
    assert folded(["A", "B"], cells, [True, True], 80) is cells
