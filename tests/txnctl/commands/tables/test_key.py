"""Keys on the command line: any bytes, typed or as Base64."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, strategies as st

from storage.errors import InvalidValue
from txnctl.commands.tables.key import key_of, shown_key


@given(st.binary(max_size=30).filter(lambda key: b"\0" not in key))
def test_an_argument_is_its_bytes(key: bytes) -> None:
    """As the shell passed them, UTF-8 or not."""
    assert key_of(os.fsdecode(key), is_base64=False) == key


@pytest.mark.parametrize(("text", "key"), [("", b""), ("/w==", b"\xff"), ("YQBi", b"a\0b")])
def test_base64_is_any_bytes(text: str, key: bytes) -> None:
    """Those that no shell can type among them."""
    assert key_of(text, is_base64=True) == key


@pytest.mark.parametrize("text", ["x", "YQ", "YQ==\n", "Y Q==", "\udcff"])
def test_what_is_no_base64_is_refused(text: str) -> None:
    """By the name of the argument; the hint says how the key itself is given."""
    with pytest.raises(InvalidValue, match=r"^END: .* is not Base64$") as refused:
        key_of(text, is_base64=True, name="END")
    assert refused.value.hint == "Leave out --key-base64 if it is the key itself."


def test_a_key_in_a_sentence_is_harmless() -> None:
    """Bytes that are no text are written out."""
    assert shown_key(b"a\x1b[2J\xff") == "a\\x1b[2J\\xff"
