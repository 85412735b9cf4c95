"""Json text: `txnctl/output/json_text.py`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from storage.values.txn_id import TxnID
from tests.txnctl.output.output_steps import CONTROLS
from txnctl.output import json_text

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class TestJson:
    """One valid document, whatever is in the row."""

    @given(JSON_VALUES)
    def test_every_value_comes_back(self, value: object) -> None:
        """In both layouts, and neither can drive a terminal."""
        for text in (json_text.one_line(value), json_text.indented(value)):
            assert json.loads(text) == value
            assert not set(text) & (set(CONTROLS) - {"\n"})
            text.encode()
        assert "\n" not in json_text.one_line(value)

    def test_layout(self) -> None:
        """Two spaces a level; what is empty stays on its line."""
        assert json_text.indented({"a": [1, {"b": {}}], "c": []}) == (
            '{\n  "a": [\n    1,\n    {\n      "b": {}\n    }\n  ],\n  "c": []\n}'
        )
        assert json_text.one_line({"a": [1, True, None], "b": "č"}) == '{"a":[1,true,null],"b":"č"}'

    def test_values_of_the_engine_are_strings(self) -> None:
        """Positions and ids are tuples inside, strings outside."""
        from storage.values.position import MessageId, Position

        row = {"at": Position(12, 4471), "id": MessageId(1, 0, 3), "txn": TxnID(42)}
        assert json_text.one_line(row) == '{"at":"12:4471","id":"1:0:3","txn":"0:42"}'
        assert json.loads(json_text.indented(row)) == {"at": "12:4471", "id": "1:0:3", "txn": "0:42"}

    def test_what_json_cannot_say_is_null_or_a_bug(self) -> None:
        """Unknown is null; bytes have fields of their own."""
        assert json_text.one_line([float("nan"), float("inf")]) == "[null,null]"
        with pytest.raises(TypeError):
            json_text.one_line({"value": b"x"})
