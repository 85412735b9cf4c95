"""Bytes as fields of a row: `key` as text for UTF-8, `keyBase64` otherwise."""

from __future__ import annotations

from binascii import a2b_base64

from txnctl.output.escape import printable_bytes
from txnctl.output.human import UNKNOWN, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


CELL_MAX = 400
"""Bytes of a key or value in a table; the other formats give all of it."""


def bytes_cell(row: Mapping[str, object], name: str) -> str:
    """The table cell of such a field, from a row with harmless texts."""
    encoded = row.get(f"{name}Base64")
    if encoded is not None:
        return shown_bytes(a2b_base64(str(encoded)))
    text = row.get(name)
    if text is None:
        return UNKNOWN
    text = str(text)
    return text if len(text) <= CELL_MAX else f"{text[:CELL_MAX]}..."


def shown_bytes(value: bytes) -> str:
    r"""UTF-8 as text, further bytes as `\xff`, made harmless; of many only the first."""
    if len(value) <= CELL_MAX:
        return printable_bytes(value)
    return f"{printable_bytes(value[:CELL_MAX])}... ({size(len(value))})"
