r"""Bytes in tables for people: UTF-8 as text, further bytes as `\xff`, made harmless, and cut where long."""

from __future__ import annotations

from txnctl.output.escape import printable, printable_bytes
from txnctl.output.human import UNKNOWN, size

CELL_MAX = 400
"""Bytes of a key or value in a table; the other formats give all of it."""


def bytes_cell(value: bytes | None) -> str:
    """The table cell of a key or value; of long UTF-8 the first characters, without the size."""
    if value is None:
        return UNKNOWN
    try:
        text = printable(value.decode())
    except UnicodeDecodeError:
        return shown_bytes(value)
    return text if len(text) <= CELL_MAX else f"{text[:CELL_MAX]}..."


def shown_bytes(value: bytes) -> str:
    r"""UTF-8 as text, further bytes as `\xff`, made harmless; of many only the first."""
    if len(value) <= CELL_MAX:
        return printable_bytes(value)
    return f"{printable_bytes(value[:CELL_MAX])}... ({size(len(value))})"
