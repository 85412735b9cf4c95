"""Rows of a query as JSON and as cells."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from storage.errors import InvalidValue
from txnctl.output import query_rows


@pytest.mark.parametrize(
    ("value", "as_json", "as_cell"),
    [
        (None, None, "-"),
        (True, True, "yes"),
        (1234, 1234, "1234"),
        (1.5, 1.5, "1.5"),
        (Decimal("1.50"), "1.50", "1.50"),
        ("\x1b[2J", "\x1b[2J", "\\x1b[2J"),
        (date(2024, 5, 1), "2024-05-01", "2024-05-01"),
        (datetime(2024, 5, 1, 10, tzinfo=UTC), "2024-05-01T10:00:00.000Z", "2024-05-01T10:00:00.000Z"),
        (datetime(2024, 5, 1, 0, 0, 0, 7, UTC), "2024-05-01T00:00:00.000007Z", "2024-05-01T00:00:00.000007Z"),
        (datetime.fromisoformat("2024-05-01T10:00"), "2024-05-01T10:00:00.000", "2024-05-01T10:00:00.000"),
        (timedelta(days=1), "1 day, 0:00:00", "1 day, 0:00:00"),
        ([b"a", None], ["a", None], "a, -"),
        ({"a": b"\xff"}, {"a": "/w=="}, "a=/w=="),
        (b"text", "text", "text"),
    ],
)
def test_values_have_one_form(value: Any, as_json: object, as_cell: str) -> None:
    """The same fact in both, harmless on a terminal."""
    assert query_rows.json_value(value) == as_json
    assert query_rows.cell(value) == as_cell


def test_bytes_of_a_row_are_text_or_base64() -> None:
    """As in all output; two columns of one name are refused."""
    assert query_rows.json_row(["key", "value"], [b"B1", b"\xff"]) == {"key": "B1", "valueBase64": "/w=="}
    assert query_rows.cell(b"\xff") == "\\xff"
    query_rows.check_columns(["key", "value"])
    with pytest.raises(InvalidValue, match="two columns of the result are named key"):
        query_rows.check_columns(["key", "value", "key"])
