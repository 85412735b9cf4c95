"""Raw LMDB with default durability: each commit is flushed, data and meta page.

A batch is one record by default, with as many bytes as this store writes but without packing: the floor for any engine
on LMDB. `put_each` stores a record for each message instead, the straightforward design.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import lmdb

_MAP_BYTES = 64 << 30


class RawLmdb:
    """A `Log`. Keys are a counter, big-endian, and appended: LMDB's fastest way in."""

    def __init__(self, directory: Path, *, put_each: bool = False) -> None:
        self._environment = lmdb.open(str(directory), map_size=_MAP_BYTES)
        self._put_each = put_each
        self._next = 0

    def append(self, values: Sequence[bytes]) -> None:
        records = values if self._put_each else (b"".join(values),)
        number = self._next
        with self._environment.begin(write=True) as transaction:
            for record in records:
                transaction.put(number.to_bytes(8, "big"), record, append=True)
                number += 1
        self._next = number

    def close(self) -> None:
        self._environment.close()
