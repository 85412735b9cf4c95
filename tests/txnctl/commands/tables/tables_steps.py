"""Steps that the tests of tables share."""

from __future__ import annotations

import base64
from pathlib import Path

BINARY = b"\xff\xfe\x00"


HOSTILE = b"a\x1b[31mred\n\xc2\x9b"


def files(path: Path) -> dict[str, bytes]:
    """What is in the store's directory, but for LMDB's reader table, which every reader writes into."""
    return {each.name: each.read_bytes() for each in path.iterdir() if each.name != "lock.mdb"}


def encoded(value: bytes) -> str:
    """Base64, as JSON shows bytes that are not UTF-8."""
    return base64.b64encode(value).decode()
