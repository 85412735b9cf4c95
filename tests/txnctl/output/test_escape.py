"""Escape: `txnctl/output/escape.py`."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from tests.txnctl.output.output_steps import CONTROLS
from txnctl.output.escape import printable, printable_bytes, printable_row


class TestEscape:
    """Stored data can never drive a terminal."""

    @given(st.text())
    def test_nothing_that_acts_remains(self, text: str) -> None:
        """Whatever the text, no control character, override or surrogate is left."""
        safe = printable(text)
        assert not set(safe) & set(CONTROLS)
        safe.encode()

    def test_each_control_is_written_out(self) -> None:
        """So that a reader sees that it is there."""
        assert printable("\x1b[2J\n\t\x9b\u202e\x7f") == "\\x1b[2J\\n\\t\\x9b\\u202e\\x7f"
        assert printable("\ud800") == "\\ud800"
        assert printable("\U000e0001") == "\\U000e0001"

    @pytest.mark.parametrize(
        "text", ["", "plain", "Příbram čeština", "日本語", "a\\n", "100 %", "\u3000", "\xa0", "😀"]
    )
    def test_text_stays_text(self, text: str) -> None:
        """Other alphabets and other spaces do nothing."""
        assert printable(text) == text

    def test_bytes_that_are_no_text(self) -> None:
        """They are shown as bytes."""
        assert printable_bytes(b"ok\xff\x1b") == "ok\\xff\\x1b"

    def test_rows_are_copied_to_the_depths(self) -> None:
        """Names in maps too."""
        row = {"a": "\x1b", "b": [{"\x07": "\x07"}], "c": 5, "d": None}
        assert printable_row(row) == {"a": "\\x1b", "b": [{"\\x07": "\\x07"}], "c": 5, "d": None}
        assert row["a"] == "\x1b"
