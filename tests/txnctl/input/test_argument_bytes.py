"""Arguments as bytes: those of the system come back whole, and text that is none is refused."""

from __future__ import annotations

import os

import pytest

from storage.errors import InvalidValue
from txnctl.input.argument_bytes import argument_bytes


@pytest.mark.parametrize("data", [b"", b"key", "größe".encode(), b"caf\xe9", b"\xff\x00\xed\xa0\x80"])
def test_the_bytes_of_the_system_come_back_whole(data: bytes) -> None:
    """Whatever a shell passes on."""
    assert argument_bytes(os.fsdecode(data), "KEY") == data


@pytest.mark.parametrize("text", ["\ud800", "key\udfff"])
def test_a_half_of_a_surrogate_pair_is_bad_input(text: str) -> None:
    """A caller in Python may give one, which is no byte of an argument."""
    with pytest.raises(InvalidValue, match="KEY has a half of a surrogate pair"):
        argument_bytes(text, "KEY")
