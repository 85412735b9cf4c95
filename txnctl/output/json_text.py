r"""Rows as JSON: the one encoder of `-o json`, `-o ndjson` and errors.

Text stays UTF-8, except for characters that could drive a terminal: control characters of both sets and direction
overrides come as `\u009b`. Positions, message ids and transaction ids are strings, as everywhere in output.
"""

from __future__ import annotations

try:
    # The C function itself: the package `json` would be a thirtieth of the whole start-up.
    from _json import encode_basestring
except ImportError:  # no CPython
    from json.encoder import encode_basestring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def one_line(value: object) -> str:
    """The value on one line, for NDJSON."""
    kind = type(value)
    if kind is str:
        return text(value)  # type: ignore[arg-type]
    if kind is dict:
        members = [f"{text(key)}:{one_line(item)}" for key, item in value.items()]  # type: ignore[attr-defined]
        return f"{{{','.join(members)}}}"
    if kind is list or kind is tuple:
        return f"[{','.join([one_line(item) for item in value])}]"  # type: ignore[attr-defined]
    return _scalar(value)


def indented(value: object, indent: str = "") -> str:
    """The value over several lines, for `-o json`; empty lists and maps stay on one."""
    kind = type(value)
    deeper = indent + "  "
    if kind is dict and value:
        return _block("{", _members(value, deeper), "}", indent)  # type: ignore[arg-type]
    if (kind is list or kind is tuple) and value:
        return _block("[", _items(value, deeper), "]", indent)  # type: ignore[arg-type]
    return one_line(value)


def text(value: str) -> str:
    """A JSON string, quotes included."""
    encoded: str = encode_basestring(value)
    if encoded.isprintable():
        return encoded
    return "".join([char if char.isprintable() else _escaped(char) for char in encoded])


def _members(value: Mapping[str, object], indent: str) -> list[str]:
    return [f"{indent}{text(key)}: {indented(item, indent)}" for key, item in value.items()]


def _items(value: Sequence[object], indent: str) -> list[str]:
    return [f"{indent}{indented(item, indent)}" for item in value]


def _block(opening: str, lines: list[str], closing: str, indent: str) -> str:
    return "\n".join([opening, ",\n".join(lines), indent + closing])


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        # NaN and the infinities have no JSON; unknown is null.
        return float.__repr__(value) if value - value == 0 else "null"
    if isinstance(value, bytes):
        raise TypeError("bytes go out as value or valueBase64")
    return text(str(value))


def _escaped(char: str) -> str:
    code = ord(char)
    if code > 0xFFFF:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"
