"""One state of a store on a server, with the calls that views make of a transaction of LMDB.

A snapshot is a transaction of the server: repeatable read for a view; for a batch one that holds the writer gate, so
that nothing changes. So a record is asked for once, and a cursor keeps what it has read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, cast

from storage.disk.overlay import Overlay
from storage.disk.postgres.binary import as_int, bytea_array, int8
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.layout import SIZES, RecordPlace, fetch_of
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.session import Session, Statement
from storage.disk.schema import HEADS, Database
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY, ReadView

_FIRST_ROWS: Final = 8
_MOST_ROWS: Final = 512
_FIRST_BULKY: Final = 1
_MOST_BULKY: Final = 32
_GROWTH: Final = 4


class Snapshot:
    """See the module.

    Attributes:
        number: the number of the commit that the snapshot shows; for a batch, of the commit that it becomes.
        superblock: the stored superblock, sealed.
    """

    __slots__ = ("_known", "_reads", "_session", "number", "superblock")

    def __init__(self, session: Session, number: int, superblock: bytes, reads: KeptReads) -> None:
        self._session = session
        self.number = number
        self.superblock = superblock
        self._reads = reads
        self._known = reads.values

    def get(self, key: bytes, *, db: object) -> bytes | None:
        """The value under a key, or None."""
        place = cast("RecordPlace", db)
        at = place.prefix + key
        known = self._known
        if at in known:
            return known[at]
        if place.name == HEADS.name and key == SUPERBLOCK_KEY:
            return self.superblock
        (rows,) = self._session.run_steps(((place.get, (at,)),))
        value = rows[0][0] if rows else None
        if not place.is_bulky:
            known[at] = value
        return value

    def fetch(self, keys: Sequence[bytes], place: RecordPlace) -> list[bytes | None]:
        """The values under keys, each None if there is none, in one round trip."""
        values = {key: self._known[key] for key in [place.prefix + key for key in keys] if key in self._known}
        unread = [at for key in keys if (at := place.prefix + key) not in values]
        if unread:
            (rows,) = self._session.run_steps(((fetch_of(place.table), (bytea_array(unread),)),))
            read: dict[bytes, bytes | None] = dict.fromkeys(unread)
            read.update((key, value) for key, value in rows if key is not None)
            values |= read
            if not place.is_bulky:
                self._known.update(read)
        return [values[place.prefix + key] for key in keys]

    def cursor(self, *, db: object) -> SnapshotCursor:
        """A cursor over a database."""
        return SnapshotCursor(self._session, cast("RecordPlace", db), self._reads)

    def stat(self, db: object) -> dict[str, int]:
        """The number of records of a database."""
        place = cast("RecordPlace", db)
        (rows,) = self._session.run_steps(((place.count, (place.prefix, place.end)),))
        return {"entries": as_int(rows[0][0]) + (place.name == HEADS.name)}

    def table_sizes(self) -> dict[str, dict[str, int]]:
        """Estimated rows and bytes of each table, in the form of LMDB's figures."""
        (rows,) = self._session.run_steps(((SIZES, ()),))
        return {
            cast("bytes", name).decode(): {
                "entries": max(0, as_int(entries)), "psize": 1, "branch_pages": 0, "leaf_pages": as_int(size),
                "overflow_pages": 0,
            }
            for name, entries, size in rows
        }  # fmt: skip

    def id(self) -> int:
        """The number of the commit that the snapshot shows."""
        return self.number


class SnapshotCursor:
    """A cursor with the calls of LMDB's. Without a place its key is empty.

    Rows are read in stretches, each longer than the one before; a move within the stretch costs no round trip.
    """

    __slots__ = ("_at", "_is_whole", "_keys", "_low", "_place", "_reads", "_session", "_size", "_values")

    def __init__(self, session: Session, place: RecordPlace, reads: KeptReads) -> None:
        """Args:
        reads: the reads of the commit, to which the cursor adds its own.
        """
        self._session = session
        self._place = place
        self._reads = reads
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._at = -1
        # Of the stretch: the keys from `_low` on are all known up to its last one, or up to the end if it is whole.
        self._low = b""
        self._is_whole = False
        self._size = _FIRST_BULKY if place.is_bulky else _FIRST_ROWS

    def __enter__(self) -> SnapshotCursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._keys, self._values = [], []

    def key(self) -> bytes:
        return self._keys[self._at] if 0 <= self._at < len(self._keys) else b""

    def value(self) -> bytes:
        return self._values[self._at] if 0 <= self._at < len(self._keys) else b""

    def first(self) -> bool:
        return self.set_range(b"")

    def last(self) -> bool:
        return self._read_back(self._place.end)

    def set_range(self, key: bytes) -> bool:
        """Move to the first key from `key` on; False if there is none."""
        keys = self._keys
        if keys and self._low <= key and (self._is_whole or key <= keys[-1]):
            self._at = bisect_left(keys, key)
            return self._at < len(keys)
        return self._read_on(key)

    def next(self) -> bool:
        if not 0 <= self._at < len(self._keys):
            return False
        self._at += 1
        if self._at < len(self._keys):
            return True
        return not self._is_whole and self._read_on(self._keys[-1] + b"\0")

    def prev(self) -> bool:
        if not 0 <= self._at < len(self._keys):
            return self.last()
        if self._at > 0:
            self._at -= 1
            return True
        return self._read_back(self._place.prefix + self._keys[0])

    def iternext(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records from the cursor on."""
        is_found = bool(self.key())
        while is_found:
            yield self._keys[self._at], self._values[self._at]
            is_found = self.next()

    def iterprev(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the records from the cursor back."""
        is_found = bool(self.key())
        while is_found:
            yield self._keys[self._at], self._values[self._at]
            is_found = self.prev()

    def _read_on(self, key: bytes) -> bool:
        """Read a stretch from `key` on, and move to its first row."""
        place, size = self._place, self._grown()
        self._read(place.next, place.prefix + key, place.end, size)
        self._low, self._is_whole, self._at = key, len(self._keys) < size, 0
        return bool(self._keys)

    def _read_back(self, end: bytes) -> bool:
        """Read a stretch of keys below `end`, a key of the table, and move to its last row."""
        place, size = self._place, self._grown()
        keys = self._read(place.back, place.prefix, end, size)
        self._low = b"" if len(keys) < size or not keys else keys[0]
        self._is_whole, self._at = end == place.end, len(keys) - 1
        return bool(keys)

    def _read(self, statement: Statement, start: bytes, end: bytes, size: int) -> list[bytes]:
        """Take the rows of a statement, in the order of keys, and return their keys."""
        place, reads = self._place, self._reads
        stretch = reads.stretch(place, (statement[0] + start, end, size))
        if stretch is None:
            (rows,) = self._session.run_steps(((statement, (start, end, int8(size))),))
            if statement is place.back:
                rows.reverse()
            keys = [cast("bytes", row[0]) for row in rows]
            stretch = [key[1:] for key in keys], [cast("bytes", row[1]) for row in rows]
            if not place.is_bulky:
                reads.values.update(zip(keys, stretch[1], strict=True))
                reads.keep_stretch(place, (statement[0] + start, end, size), stretch)
        self._keys, self._values = stretch
        return self._keys

    def _grown(self) -> int:
        """The rows of the next stretch."""
        size, most = self._size, _MOST_BULKY if self._place.is_bulky else _MOST_ROWS
        self._size = min(size * _GROWTH, most)
        return size


class ServerView(ReadView):
    """A view of a snapshot."""

    __slots__ = ()

    def _read_superblock(self) -> Superblock:
        """The superblock, without a jump of the server's clock that no batch has recorded."""
        return cast("ServerClock", self.clock).hold_back(super()._read_superblock())

    def fetch(self, database: Database, keys: Sequence[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = self._raw.fetch(keys, self._databases[database.name])
        return values

    def database_stats(self) -> dict[str, dict[str, int]]:
        """Rows, as the server estimates them, and bytes of each table, as pages of one byte."""
        figures: dict[str, dict[str, int]] = self._raw.table_sizes()
        return figures


class Changes(Overlay):
    """The changes of a batch over its snapshot, which the commit sends in one round trip."""

    __slots__ = ("_places",)

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self._places: list[RecordPlace] = []

    def put(self, key: bytes, value: bytes, *, db: object) -> None:
        """Keep a value under a key. Unlike a dry run, the batch asks the server for numbers of records."""
        self._of(db).put(key, value)

    def delete(self, key: bytes, *, db: object) -> bool:
        """Remove a record; False if there is none."""
        is_stored = self.get(key, db=db) is not None
        if is_stored:
            self._of(db).delete(key)
        return is_stored

    def stat(self, db: object) -> dict[str, int]:
        """The number of records of a database as changed."""
        changes, raw = self._of(db), self._raw
        place = cast("RecordPlace", db)
        entries = raw.stat(db)["entries"]
        if changes.values:
            stored = dict(zip(changes.values, raw.fetch(list(changes.values), place), strict=True))
            entries += sum(
                (value is not None) - (stored[key] is not None) for key, value in changes.values.items()
            )
        return {"entries": entries}

    def id(self) -> int:
        """The number that the commit will have."""
        return cast("int", self._raw.number)

    def _of(self, db: object) -> Any:
        changes = self._changes.get(id(db))
        if changes is None:
            changes = super()._of(db)
            self._places.append(cast("RecordPlace", db))
        return changes

    def changed(self) -> dict[RecordPlace, dict[bytes, bytes | None]]:
        """The changed keys of each database with their values; None for a removed record."""
        return {place: values for place in self._places if (values := self._changes[id(place)].values)}
