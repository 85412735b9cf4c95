"""Tables for people: columns in line, numbers to the right."""

from __future__ import annotations

from txnctl.output.field import Field
from txnctl.output.table import aligned, list_table, object_table

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
    assert list(list_table(ROWS, FIELDS)) == ["NAME  COUNT  NOTE", "a         5  x", "long  1,234  -"]


def test_no_rows_are_no_table() -> None:
    """Not even headings."""
    assert list(list_table([], FIELDS)) == []
    assert aligned(["A"], [], ["left"]) == ""


def test_an_object_is_a_line_a_field() -> None:
    """Its headings in small letters."""
    assert list(object_table(ROWS[1], FIELDS)) == ["name   long", "count  1,234", "note   -"]
