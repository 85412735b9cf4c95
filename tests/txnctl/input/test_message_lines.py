"""Message lines: `txnctl/input/message_lines.py`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage.errors import BadLine
from tests.txnctl.output.output_steps import StoredEntry, entries
from txnctl.input.message_lines import Parsed, parse
from txnctl.output.messages import (
    entry_lines,
)


def same_column(given_column: list[Any] | None, parsed: list[Any] | None, count: int) -> bool:
    """Equal, where nothing, null and an empty map are all absence."""
    return [each or None for each in given_column or [None] * count] == [
        each or None for each in parsed or [None] * count
    ]


def error_of(line: bytes) -> str:
    """What is said about this line, the seventh."""
    parsed = parse([line], 7)
    assert not parsed.values
    (error,) = parsed.errors
    assert isinstance(error, BadLine)
    assert error.details == {"lineNumber": 7}
    assert error.message.startswith("line 7: ")
    return error.message.removeprefix("line 7: ")


class TestMessages:
    """`consume -o ndjson | produce --input ndjson` is the identity."""

    @given(entries())
    def test_what_goes_out_comes_back(self, entry: StoredEntry) -> None:
        """Value, key, properties, event time, delivery time, null, binary."""
        lines = entry_lines(entry).split(b"\n")[:-1]  # type: ignore[arg-type]
        assert len(lines) == entry.count
        parsed = parse(lines)
        assert not parsed.errors
        assert parsed.values == entry.values
        assert (parsed.keys or [None] * entry.count) == (entry.keys or [None] * entry.count)
        assert same_column(entry.properties, parsed.properties, entry.count)
        assert (parsed.event_times or [None] * entry.count) == (entry.event_times or [None] * entry.count)
        assert same_column(entry.delivery_times, parsed.delivery_times, entry.count)


class TestParsing:
    """Bad lines are named; a misspelt field never becomes a tombstone."""

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b"{", "not JSON: Expecting property name enclosed in double quotes at character 2"),
            (b"x", "not JSON: Expecting value at character 1"),
            (b"[1]", "not a JSON object"),
            (b'"a"', "not a JSON object"),
            (b"{} {}", "more follows the JSON value, at character 3"),
            (b"{}", 'neither "value" nor "valueBase64" is there'),
            (b'{"vaule":"x"}', 'neither "value" nor "valueBase64" is there'),
            (b'{"value":5}', '"value" is not text'),
            (b'{"value":"a","valueBase64":"YQ=="}', 'both "value" and "valueBase64" are there'),
            (b'{"valueBase64":"?"}', '"valueBase64" is not Base64'),
            (b'{"valueBase64":5}', '"valueBase64" is not Base64'),
            (b'{"valueBase64":"\xc3\xa9"}', '"valueBase64" is not Base64'),
            (b'{"value":"\\ud800"}', '"value" holds half of a surrogate pair'),
            (b'{"value":"x","key":[]}', '"key" is not text'),
            (b'{"value":"x","properties":[]}', '"properties" is not an object of texts'),
            (b'{"value":"x","properties":0}', '"properties" is not an object of texts'),
            (b'{"value":"x","properties":{"a":1}}', '"properties" is not an object of texts'),
            (b'{"value":"x","properties":{"a":"\\udfff"}}', '"properties" holds half of a surrogate pair'),
            (b'{"value":"x","eventTimeMs":"1"}', '"eventTimeMs" is not an integer'),
            (b'{"value":"x","eventTimeMs":true}', '"eventTimeMs" is not an integer'),
            (
                b'{"value":"x","eventTime":20240501}',
                "eventTime is a time in 1970, in milliseconds: 20240501. A date",
            ),
            (
                b'{"value":"x","eventTime":"1714521600"}',
                "eventTime is a time in 1970, in milliseconds: 1714521600",
            ),
            (
                b'{"value":"x","deliveryTime":20300501}',
                "deliveryTime is a time in 1970, in milliseconds: 20300501",
            ),
            (
                b'{"value":"x","deliveryTime":"soon"}',
                "deliveryTime is not a time such as 2024-05-01T10:00:00Z: 'soon'",
            ),
            (b'{"value":"x","eventTime":true}', '"eventTime" is neither text nor an integer'),
            (b'{"value":"x","eventTime":5,"eventTimeMs":5}', '"eventTime" and "eventTimeMs" say the same'),
            (b"\xff", "not UTF-8 at byte 0"),
            (b"[" * 100_000, "nested too deeply"),
        ],
    )
    def test_what_is_wrong_is_said(self, line: bytes, message: str) -> None:
        """In words that name the field."""
        assert error_of(line).startswith(message)

    def test_a_time_is_text_or_milliseconds(self) -> None:
        """A field named after milliseconds takes every number, as `consume` prints them."""
        parsed = parse(
            [
                b'{"value":"a","eventTime":"2024-05-01","deliveryTime":"2030-05-01T10:00:00Z"}',
                b'{"value":"b","eventTime":5,"deliveryTime":1714557600000}',
                b'{"value":"c","eventTimeMs":20240501,"deliveryTimeMs":1714521600}',
            ]
        )
        assert parsed.errors == []
        assert parsed.event_times == [1714521600000, 5, 20240501]
        assert parsed.delivery_times == [1903860000000, 1714557600000, 1714521600]

    def test_huge_numbers_do_not_break_it(self) -> None:
        """Python refuses to read them; that is the line's fault."""
        assert error_of(b'{"value":"x","n":' + b"9" * 5_000 + b"}").startswith("not JSON")

    def test_reading_stops_at_the_first_bad_line(self) -> None:
        """With everything before it, numbered."""
        parsed = parse([b'{"value":"a"}\n', b"\n", b"{\n", b'{"value":"b"}\n'], 5)
        assert (parsed.values, parsed.numbers) == ([b"a"], [5])
        assert [error.details["lineNumber"] for error in parsed.errors] == [7]

    def test_bad_lines_can_be_skipped(self) -> None:
        """Each is reported."""
        parsed = parse([b'{"value":"a"}', b"{", b'{"value":null,"key":"k"}', b"x"], skip_bad=True)
        assert (parsed.values, parsed.keys, parsed.numbers) == ([b"a", None], [None, b"k"], [1, 3])
        assert [error.details["lineNumber"] for error in parsed.errors] == [2, 4]

    def test_columns_without_content_are_none(self) -> None:
        """As the engine takes them."""
        parsed = parse([b'  {"value":"a","key":null,"properties":{},"eventTimeMs":null,"other":1}\r\n'])
        assert (parsed.keys, parsed.properties, parsed.event_times) == (None, None, None)
        assert parse([]).values == []

    @given(st.binary(max_size=60))
    def test_any_line_is_a_message_or_bad(self, line: bytes) -> None:
        """Never another exception."""
        parsed = parse([line])
        assert isinstance(parsed, Parsed)
        assert len(parsed.values) + len(parsed.errors) <= 1
