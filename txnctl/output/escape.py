r"""Stored text made harmless: no message, key, name or label can drive a terminal.

Control characters (C0, DEL, C1), line and paragraph separators, direction overrides and lone surrogates are
written as `\n`, `\x1b`, `\u202e`. A backslash stays one: the text is for people, JSON is for programs.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar, cast

from storage.actions import Action
from txnctl.output.shell import spell

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """`text` with everything that could act on a terminal written out."""
    if text.isprintable():
        return text
    return "".join([char if _harmless(char) else _written_out(char) for char in text])


def printable_bytes(value: bytes) -> str:
    r"""UTF-8 as text, further bytes as `\xff`, made harmless."""
    return printable(value.decode("utf-8", "backslashreplace"))


T = TypeVar("T")


def printable_row(value: T) -> T:
    """A copy of a row in which every text, also inside parts, lists and maps, is harmless.

    Actions and hints become text.
    """
    if isinstance(value, (str, Action)) and not isinstance(value, Enum):
        return cast(T, printable(spell(value)))
    kind = type(value)
    if kind is dict:
        items = cast(dict[object, object], value).items()
        return cast(T, {printable(str(key)): printable_row(item) for key, item in items})
    if kind is list:
        return cast(T, [printable_row(item) for item in cast(list[object], value)])
    names = getattr(kind, "_fields", None)
    if names is not None:
        return kind(*[printable_row(getattr(value, name)) for name in names])
    return value


def _harmless(char: str) -> bool:
    # Other spaces (no-break, ideographic) are not "printable" for Python, yet do nothing.
    return char.isprintable() or (char.isspace() and char >= "\xa0" and char not in "\u2028\u2029")


def _written_out(char: str) -> str:
    code = ord(char)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return _NAMED.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
