"""The keys that a read selects."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidValue
from txnctl.spark.source.key_selection import ALL_KEYS, KeySelection, parse_keys

keys = st.binary(max_size=2)
steps = st.lists(st.one_of(st.frozensets(keys, max_size=3), st.tuples(keys, st.none() | keys)), max_size=3)


@given(steps=steps, asked=st.none() | keys)
def test_restrictions_hold_together(
    steps: list[frozenset[bytes] | tuple[bytes, bytes | None]], asked: bytes | None
):
    """A key is selected if every set and every range has it; no key at all only without any restriction."""
    selection, expected = ALL_KEYS, True
    for step in steps:
        if isinstance(step, frozenset):
            selection, has = selection.one_of(step), asked in step
        else:
            start, end = step
            selection = selection.within(start, end)
            has = asked is not None and asked >= start and (end is None or asked < end)
        expected = expected and has
    assert selection.has(asked) == expected
    assert not (expected and selection.is_empty)
    assert selection.indexes([asked], 0, 1) == ([0] if expected else [])


@pytest.mark.parametrize(
    ("given_options", "expected"),
    [
        ({}, ALL_KEYS),
        ({"keys": "B1,B 2"}, KeySelection(frozenset({b"B1", b"B 2"}), takes_null=False)),
        ({"keys": '["a,b", {"base64": "/w=="}]'}, KeySelection(frozenset({b"a,b", b"\xff"}), takes_null=False)),
        ({"keyFrom": "b", "keyUntil": "d"}, KeySelection(None, b"b", b"d", False)),
        ({"keyUntil": '{"base64": "/w=="}'}, KeySelection(None, b"", b"\xff", False)),
        ({"keyPrefix": "ab"}, KeySelection(None, b"ab", b"ac", False)),
        ({"keyPrefix": "ab", "keyFrom": "abx", "keys": "abc,aby"}, KeySelection(frozenset({b"aby"}), b"abx", b"ac", False)),
    ],
)  # fmt: skip
def test_options_select_keys(given_options: dict[str, str], expected: KeySelection) -> None:
    """As text with commas between them, as JSON where a key has a comma or is no text, and as ranges."""
    assert parse_keys(given_options) == expected


@pytest.mark.parametrize("text", ["[", "[1]", "{}[", '[{"base64": "?"}]', '[{"base32": "/w=="}]', "\ud800"])
def test_what_is_no_key_is_refused(text: str) -> None:
    """As an error of the tool that shows the form."""
    if text == "{}[":
        assert parse_keys({"keys": text}).keys == {b"{}["}
        return
    with pytest.raises(InvalidValue) as error:
        parse_keys({"keys": text})
    assert "base64" in (error.value.hint or "")
