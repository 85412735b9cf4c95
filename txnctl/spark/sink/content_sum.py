"""A checksum of the rows of a write, equal for equal rows however Spark divides them among tasks. No lmdb.

The sum of the BLAKE2b hashes of all rows: neither the number of partitions nor their order matters, which may differ
when a job runs again, and every row counts, duplicates included.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import repeat
from typing import Final

from storage.topic.entry import Columns

_BYTES: Final = 16
_MODULUS: Final = 1 << 8 * _BYTES


def sum_of(target: str, messages: Columns) -> int:
    """The sum of the rows of one topic or table."""
    start = blake2b(_sized(target.encode()), digest_size=_BYTES)
    total = 0
    for value, key, properties, event_time in zip(
        messages.values,
        messages.keys or repeat(None),
        messages.properties or repeat(None),
        messages.event_times or repeat(None),
        strict=False,
    ):
        row = start.copy()
        row.update(_sized(value) + _sized(key) + b"%d," % (-1 if event_time is None else event_time))
        for name, text in sorted((properties or {}).items()):
            row.update(_sized(name.encode()) + _sized(text.encode()))
        total += int.from_bytes(row.digest(), "big")
    return total % _MODULUS


def joined(sums: Iterable[int]) -> int:
    """The sum of parts."""
    return sum(sums) % _MODULUS


def as_text(total: int) -> str:
    """The sum in hexadecimal digits."""
    return f"{total:0{2 * _BYTES}x}"


def _sized(data: bytes | None) -> bytes:
    """The bytes behind their number, so that no two rows run together alike."""
    return b"-" if data is None else b"%d:" % len(data) + data
