"""Parameters and results of statements in the binary form of PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from storage.process.identity import printable

_ARRAY: Final = Struct(
    ">iiIii"
)  # dimensions, whether there are nulls, type of the elements, length, lower bound
_LENGTH: Final = Struct(">i")
_BYTEA: Final = 17
_INT8: Final = 20
_INT4: Final = 23
_TRUE: Final = b"\x01"


def int8(number: int) -> bytes:
    """An integer of eight bytes."""
    return number.to_bytes(8, "big", signed=True)


def int4(number: int) -> bytes:
    """An integer of four bytes."""
    return number.to_bytes(4, "big", signed=True)


def as_int(value: bytes | None) -> int:
    """An integer of any width; 0 for null."""
    return 0 if value is None else int.from_bytes(value, "big", signed=True)


def as_bool(value: bytes | None) -> bool:
    """A truth value; False for null."""
    return value == _TRUE


def bytea_array(values: Sequence[bytes]) -> bytes:
    """An array of byte strings."""
    pack = _LENGTH.pack
    parts = [_ARRAY.pack(1, 0, _BYTEA, len(values), 1)]
    for value in values:
        parts += pack(len(value)), value
    return b"".join(parts)


def int8_array(values: Sequence[int]) -> bytes:
    """An array of integers of eight bytes."""
    elements = b"".join([b"\0\0\0\x08" + int8(value) for value in values])
    return _ARRAY.pack(1, 0, _INT8, len(values), 1) + elements


def int4_array(values: Sequence[int]) -> bytes:
    """An array of integers of four bytes."""
    elements = b"".join([b"\0\0\0\x04" + int4(value) for value in values])
    return _ARRAY.pack(1, 0, _INT4, len(values), 1) + elements


def as_bytes(truth: bool) -> bytes:
    """A truth value as a parameter."""
    return _TRUE if truth else b"\0"


def as_int_or_none(value: bytes | None) -> int | None:
    """A number, or None for NULL."""
    return None if value is None else as_int(value)


def as_text(value: bytes | None) -> str | None:
    """Text of a session, on one line; None for NULL."""
    return None if value is None else printable(value.decode(errors="replace"))
