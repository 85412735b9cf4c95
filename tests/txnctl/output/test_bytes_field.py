"""Bytes as fields: text where they are UTF-8, Base64 elsewhere, and in a table harmless and short."""

from __future__ import annotations

from base64 import b64decode

import pytest
from hypothesis import given, strategies as st

from storage.json_form import bytes_field
from txnctl.output.bytes_field import CELL_MAX, bytes_cell, shown_bytes


@given(
    st.one_of(st.binary(max_size=20), st.text(max_size=10).map(lambda text: text.encode("utf-8", "replace")))
)
def test_a_field_holds_the_bytes(value: bytes) -> None:
    """Under one of two names, never both."""
    ((name, text),) = bytes_field("key", value).items()
    assert {"key": text.encode, "keyBase64": lambda: b64decode(text)}[name]() == value
    assert (name == "key") == (value.decode("utf-8", "ignore").encode() == value)


@pytest.mark.parametrize(
    ("key", "cell"),
    [
        (b"text", "text"),
        (None, "-"),
        (b"", ""),
        (b"\xff", "\\xff"),
        (b"a\x00", "a\\x00"),
    ],
)
def test_a_cell_shows_either(key: bytes | None, cell: str) -> None:
    """Further bytes are written out."""
    assert bytes_cell(key) == cell


def test_nothing_is_null() -> None:
    """Not an empty text."""
    assert bytes_field("value", None) == {"value": None}
    assert bytes_field("value", b"") == {"value": ""}


def test_long_values_are_cut_in_tables() -> None:
    """What is left out is counted where the bytes are known."""
    assert bytes_cell(b"x" * CELL_MAX) == "x" * CELL_MAX
    assert bytes_cell(b"x" * (CELL_MAX + 1)) == "x" * CELL_MAX + "..."
    assert bytes_cell(b"\n" * CELL_MAX) == "\\n" * (CELL_MAX // 2) + "..."
    assert bytes_cell(b"\xff" * 2048) == shown_bytes(b"\xff" * 2048)
    assert shown_bytes(b"x" * 2048) == "x" * CELL_MAX + "... (2.0 KiB)"
