"""Sealed records in key order, for copies of stores: the same bytes in both engines.

A sealed record is a key with the stored value, checksum and payload (`schema.py`). Each engine reads sealed records
from one view of a store (`CopyView`), and writes records into a store that is being built (`StoreBuild`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from storage.disk.schema import FORMAT_KEY, HEADS, SERVER_KEY, STORE, Database
from storage.disk.view import SUPERBLOCK_KEY, ReadView
from storage.process.clock import Clock

Record = tuple[bytes, bytes]
"""A key, and the sealed value."""

Change = tuple[Database, bytes, bytes | None]
"""A record to be put; to be removed if the value is None."""

CHUNK_BYTES: Final = 4 << 20
"""The bytes of records read at a time."""

_OWN: Final = {STORE.name: (FORMAT_KEY, SERVER_KEY), HEADS.name: (SUPERBLOCK_KEY,)}
"""The records that each store has of its own, by database: a build gets them by `finish`."""


class RecordReader(Protocol):
    """Reads sealed records in stretches."""

    def read(self, database: Database, start: bytes) -> Sequence[Record]:
        """Records from `start` on in key order, about `CHUNK_BYTES` in all; none at the end. Nothing is checked."""


class CopyView(RecordReader, Protocol):
    """The records of a store as of one commit.

    Attributes:
        total_bytes: the size of the store, an estimate for progress.
    """

    total_bytes: int

    @property
    def view(self) -> ReadView:
        """The view that the records are read from."""


class StoreBuild(RecordReader, Protocol):
    """A store that one process builds beside the destination; an interrupted build stays, and goes on in the next run.

    Without a format record, which `finish` writes, the build is no store that opens.

    Attributes:
        path: the name by which the finished build opens.
        destination: the name of the store that the build becomes, without a password.
        is_resumed: whether an earlier run has begun the build.
    """

    path: str
    destination: str
    is_resumed: bool

    @property
    def clock(self) -> Clock:
        """The clocks by which the store will go."""

    def write(self, changes: Sequence[Change]) -> None:
        """Write all changes, or none."""

    def finish(self, superblock: bytes, format_record: bytes) -> None:
        """Write the two sealed records that make the build a store, durably."""

    def install(self) -> int:
        """Make the finished build the store at the destination, at one instant; return the size in bytes.

        Raises:
            AlreadyExists: a store came to the destination meanwhile.
            OutcomeUnknown
        """

    def discard(self) -> None:
        """Remove the build."""


def scan(reader: RecordReader, database: Database) -> Iterator[Record]:
    """All records of a database in key order, without those that each store has of its own."""
    own = _OWN.get(database.name, ())
    start = b""
    while records := reader.read(database, start):
        for record in records:
            if record[0] not in own:
                yield record
        start = records[-1][0] + b"\0"


def chunk(records: Iterable[Record]) -> list[Record]:
    """The first records, about `CHUNK_BYTES` of them."""
    taken, size = [], 0
    for record in records:
        taken.append(record)
        size += len(record[1])
        if size >= CHUNK_BYTES:
            break
    return taken
