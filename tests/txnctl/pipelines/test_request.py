"""The rule of a request: `txnctl/pipelines/request.py`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from txnctl.pipelines.hellers import format_hellers
from txnctl.pipelines.request import KEYED, RequestForm, legs_of

TRANSFER = RequestForm("sum", debit="from", credit="to")
POSTING = RequestForm("sum", legs="legs")


@pytest.mark.parametrize(
    ("form", "key", "value", "legs"),
    [
        (KEYED, b"B1", b'{"delta": "500.00"}', [("B1", 50_000)]),
        (KEYED, b"B1", b' {"delta": -20.5}\n', [("B1", -2_050)]),
        (KEYED, b"B1", b'{"delta": -0, "other": {"delta": 7}}', [("B1", 0)]),
        (RequestForm("a.b"), "é".encode(), b'{"a.b": 999999999999999.99}', [("é", 99_999_999_999_999_999)]),
        (TRANSFER, None, b'{"from": "B1", "to": 007, "sum": 1}', None),
        (TRANSFER, None, b'{"from": "B1", "to": 7, "sum": 1.50}', [("B1", -150), ("7", 150)]),
        (TRANSFER, b"x", b'{"from": "B1", "to": "B1", "sum": "-2"}', [("B1", 200), ("B1", -200)]),
        (POSTING, None, b'{"legs": [{"account": "B1", "sum": 5, "text": null}]}', [("B1", 500)]),
    ],
)
def test_the_legs_of_a_request(
    form: RequestForm, key: bytes | None, value: bytes, legs: list[tuple[str, int]] | None
) -> None:
    """Numbers count as they are written."""
    assert legs_of(key, value, form) == legs


@pytest.mark.parametrize(
    ("form", "key", "value"),
    [
        (KEYED, None, b'{"delta": "1"}'),
        (KEYED, b"", b'{"delta": "1"}'),
        (KEYED, b"\xff", b'{"delta": "1"}'),
        (KEYED, b"B" * 401, b'{"delta": "1"}'),
        *[
            (KEYED, b"B1", value)
            for value in (
                None, b"", b"7", b"[]", b"{}", b"no JSON", b"{'delta': '1'}", b'{"delta": "1"} x',
                b'\xef\xbb\xbf{"delta": "1"}', b'{"delta": "\xff"}', b'{"delta": NaN}', b'{"delta": 1e2}',
                b'{"delta": "1.005"}', b'{"delta": "1."}', b'{"delta": " 1"}', b'{"delta": "1\\n"}', b'{"delta": "+1"}',
                b'{"delta": "1234567890123456"}', b'{"delta": true}', b'{"delta": null}', b'{"delta": ["1"]}',
                b'{"delta": 1, "delta": 2}', '{"delta": "\u0661"}'.encode(), b"[" * 200_000, b'{"delta": ' + b"1" * 5000 + b"}",
            )
        ],
        (TRANSFER, None, b'{"from": "B1", "sum": "1"}'),
        (TRANSFER, None, b'{"from": null, "to": "B1", "sum": "1"}'),
        (TRANSFER, None, b'{"from": "", "to": "B1", "sum": "1"}'),
        (TRANSFER, None, b'{"from": "\\ud800", "to": "B1", "sum": "1"}'),
        (POSTING, None, b'{"legs": []}'),
        (POSTING, None, b'{"legs": {"account": "B1", "sum": "1"}}'),
        (POSTING, None, b'{"legs": [{"account": "B1", "sum": "1"}, {"account": "B2"}]}'),
        (POSTING, None, b'{"legs": [{"account": "B1", "sum": "1"}, 7]}'),
        (POSTING, None, b'{"legs": "no list"}'),
    ],
)  # fmt: skip
def test_what_is_no_request(form: RequestForm, key: bytes | None, value: bytes | None) -> None:
    """It is refused as a whole, and nothing about it is an error in the program."""
    assert legs_of(key, value, form) is None


@given(
    st.lists(st.tuples(st.text(min_size=1, max_size=99), st.integers(-(10**17) + 1, 10**17 - 1)), min_size=1)
)
def test_every_posting_is_read_as_it_was_written(legs: list[tuple[str, int]]) -> None:
    """Whatever the accounts are called."""
    listed = [{"account": account, "sum": format_hellers(hellers)} for account, hellers in legs]
    assert legs_of(None, json.dumps({"legs": listed}).encode(), POSTING) == legs


@given(st.binary(max_size=50), st.none() | st.binary(max_size=5))
def test_no_bytes_are_an_error(value: bytes, key: bytes | None) -> None:
    """A message may hold anything."""
    for form in (KEYED, TRANSFER, POSTING):
        legs_of(key, value, form)
