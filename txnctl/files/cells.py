"""A value of a row as JSON, and as the bytes of a message.

A cell is a value of JSON, bytes, a decimal, or an object of a class below.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from decimal import Decimal
from json.encoder import encode_basestring
from math import isfinite
from typing import Final

from txnctl.input.json_object import Unreadable


class Number(str):
    """The digits of a number in the file."""

    __slots__ = ()


class TimeText(str):
    """RFC 3339 of a typed time; one without a zone, where the file has none."""

    __slots__ = ()


class BadCell(str):
    """The reason why a value has no form."""

    __slots__ = ()


class Pairs(list[tuple[object, object]]):
    """Names and values of an object, in order; a map may have a name twice."""

    __slots__ = ()


_NOT_FINITE: Final = {"inf": '"Infinity"', "-inf": '"-Infinity"', "nan": '"NaN"'}


def json_text(cell: object) -> str:
    """Return a cell as JSON: numbers to the last digit, bytes as Base64.

    Raises:
        Unreadable: the cell has no form.
    """
    if cell is None:
        return "null"
    if isinstance(cell, str):
        if type(cell) is Number:
            return _NOT_FINITE.get(cell, cell)
        if type(cell) is BadCell:
            raise Unreadable(cell)
        return str(encode_basestring(cell))
    if cell is True or cell is False:
        return "true" if cell else "false"
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, float):
        return repr(cell) if isfinite(cell) else _NOT_FINITE[repr(cell)]
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    if isinstance(cell, bytes):
        return f'"{b64encode(cell).decode()}"'
    if isinstance(cell, dict):
        return _object(cell.items())
    if isinstance(cell, Pairs):
        return _object(cell)
    assert isinstance(cell, list), f"{type(cell)} is no cell"
    return "[" + ",".join(map(json_text, cell)) + "]"


def _object(pairs: Iterable[tuple[object, object]]) -> str:
    items = (f"{encode_basestring(as_text(name) or '')}:{json_text(item)}" for name, item in pairs)
    return "{" + ",".join(items) + "}"


def as_text(cell: object) -> str | None:
    """Return a cell as text: without the quotes of JSON.

    Raises:
        Unreadable: the cell has no form.
    """
    if cell is None or (isinstance(cell, str) and type(cell) is not BadCell):
        return cell
    return json_text(cell).strip('"')


def as_bytes(cell: object) -> bytes | None:
    """Return a cell as bytes: bytes unchanged, the rest as text.

    Raises:
        Unreadable: the cell has no form.
    """
    if cell is None or isinstance(cell, bytes):
        return cell
    try:
        return (as_text(cell) or "").encode()
    except UnicodeEncodeError:
        raise Unreadable("a text holds half of a surrogate pair") from None


def json_form(names: Iterable[str]) -> str:
    """Return the form of an object with these names, to be filled with the JSON of each value by `%`."""
    return "{" + ",".join(encode_basestring(name).replace("%", "%%") + ":%s" for name in names) + "}"
