"""One state of a store on a server, with the calls that views make of a transaction of LMDB.

A snapshot is a transaction of the server: repeatable read for a view; for a batch one that holds the writer gate, so
that nothing changes. So a record is asked for once, and a cursor keeps what it has read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, cast

from storage.disk.overlay import Overlay
from storage.disk.postgres import floors
from storage.disk.postgres.binary import as_int, bytea_array, int8
from storage.disk.postgres.kept_reads import KeptReads
from storage.disk.postgres.layout import SIZES, RecordPlace, fetch_of
from storage.disk.postgres.server_clock import ServerClock
from storage.disk.postgres.session import Session, Statement
from storage.disk.schema import HEADS, OPEN_FIRST, Database
from storage.disk.superblock import Superblock
from storage.disk.view import SUPERBLOCK_KEY, ReadView, WriteBatch

_FIRST_ROWS: Final = 8
_MOST_ROWS: Final = 512
_FIRST_BULKY: Final = 1
_MOST_BULKY: Final = 32
_GROWTH: Final = 4


class Snapshot:
    """See the module.

    Attributes:
        session: the session whose transaction the snapshot is.
        number: the number of the commit that the snapshot shows; for a batch, of the commit that it becomes.
        reads: the reads of the commit, which the snapshot adds to.
        superblock: the stored superblock, sealed.
        floor: no deadline of the state is below this key.
        first_deadline: the first deadline of the state, once a cursor has read it.
    """

    __slots__ = (
        "_known",
        "first_deadline",
        "floor",
        "is_proven",
        "number",
        "reads",
        "session",
        "superblock",
    )

    def __init__(
        self, session: Session, number: int, stored: bytes, reads: KeptReads, *, is_proven: bool = True
    ) -> None:
        """Args:
        stored: superblock and floor, as the commit stored them.
        is_proven: whether all reads are of the commit; a batch that is made without the gate may read later ones.
        """
        self.is_proven = is_proven
        self.session = session
        self.number = number
        self.superblock, self.floor = floors.split(stored)
        self.first_deadline: bytes | None = None
        self.reads = reads
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
        (rows,) = self.session.run_steps(((place.get, (at,)),))
        value = rows[0][0] if rows else None
        if not place.is_bulky:
            known[at] = value
        return value

    def fetch(self, keys: Sequence[bytes], place: RecordPlace) -> list[bytes | None]:
        """The values under keys, each None if there is none, in one round trip."""
        values = {key: self._known[key] for key in [place.prefix + key for key in keys] if key in self._known}
        unread = [at for key in keys if (at := place.prefix + key) not in values]
        if unread:
            (rows,) = self.session.run_steps(((fetch_of(place.table), (bytea_array(unread),)),))
            read: dict[bytes, bytes | None] = dict.fromkeys(unread)
            read.update((key, value) for key, value in rows if key is not None)
            values |= read
            if not place.is_bulky:
                self._known.update(read)
        return [values[place.prefix + key] for key in keys]

    def cursor(self, *, db: object, low: bytes = b"", end: bytes | None = None) -> SnapshotCursor:
        """A cursor over the records of a database from the key `low` on, and below the key `end`."""
        return SnapshotCursor(self, cast("RecordPlace", db), low, end)

    def stat(self, db: object) -> dict[str, int]:
        """The number of records of a database."""
        place = cast("RecordPlace", db)
        first = self.floor if floors.has_floor(place) else b""
        (rows,) = self.session.run_steps(((place.count, (place.prefix + first, place.end)),))
        return {"entries": as_int(rows[0][0]) + (place.name == HEADS.name)}

    def table_sizes(self) -> dict[str, dict[str, int]]:
        """Estimated rows and bytes of each table, in the form of LMDB's figures."""
        (rows,) = self.session.run_steps(((SIZES, ()),))
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

    __slots__ = (
        "_at", "_begin", "_end", "_is_whole", "_keys", "_low", "_place", "_reads", "_session", "_size",
        "_size_back", "_snapshot", "_values",
    )  # fmt: skip

    def __init__(self, snapshot: Snapshot, place: RecordPlace, low: bytes, end: bytes | None) -> None:
        """Args:
        low, end: the keys that are looked at: from `low` on, below `end`, which is None for the end of the database.
            Rows beyond are not read: removed ones cost time there as long as any snapshot needs them.
        """
        self._snapshot = snapshot
        self._session = snapshot.session
        self._begin, self._end = place.prefix + low, place.end if end is None else place.prefix + end
        self._place = place
        self._reads = snapshot.reads
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._at = -1
        # Of the stretch: the keys from `_low` on are all known up to its last one, or up to the end if it is whole.
        self._low = b""
        self._is_whole = False
        self._size = self._size_back = _FIRST_BULKY if place.is_bulky or place.is_changing else _FIRST_ROWS

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
        return self.set_range(self._begin[len(self._place.prefix) :])

    def last(self) -> bool:
        return self._read_back(self._end)

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
        place, snapshot, size = self._place, self._snapshot, self._size
        self._size = self._grown(size)
        if floors.has_floor(place):
            start = max(key, snapshot.floor)
            keys = self._read(place.next, place.prefix + start, self._end, size)
            if start == snapshot.floor and (keys or self._end == place.end):
                snapshot.first_deadline = keys[0] if keys else floors.NO_RECORD
        elif place.name == OPEN_FIRST.name:
            start = self._reads.floor(key)
            keys = self._read(place.next, place.prefix + start, self._end, size)
            if keys:
                self._reads.note_floor(key, keys[0], is_proven=snapshot.is_proven)
        else:
            keys = self._read(place.next, place.prefix + key, self._end, size)
        self._low, self._is_whole, self._at = key, len(keys) < size, 0
        return bool(keys)

    def _read_back(self, end: bytes) -> bool:
        """Read a stretch of keys below `end`, a key of the table, and move to its last row."""
        place, size = self._place, self._size_back
        self._size_back = self._grown(size)
        keys = self._read(place.back, self._begin, end, size)
        self._low = self._begin[len(place.prefix) :] if len(keys) < size or not keys else keys[0]
        self._is_whole, self._at = end == self._end, len(keys) - 1
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

    def _grown(self, size: int) -> int:
        """The rows of the stretch after one of `size` rows in the same direction."""
        return min(size * _GROWTH, _MOST_BULKY if self._place.is_bulky else _MOST_ROWS)


class _StateOnServer(ReadView):
    """What views and batches on a server have in common: no row behind the prefix of a look is read."""

    __slots__ = ()

    def _cursor(self, database: Database, prefix: bytes, stop: bytes | None = None) -> Any:
        end = _end_of(prefix) if stop is None else stop + b"\0"
        return self._raw.cursor(db=self._databases[database.name], low=prefix, end=end)

    def count_at_once(self, database: Database) -> None:
        """None: the number of records would take a look at each."""

    def has_records(self, database: Database) -> bool:
        """Whether there is any record: the number of records would take a look at each."""
        with self._cursor(database, b"") as cursor:
            is_found: bool = cursor.first()
            return is_found


def _end_of(prefix: bytes) -> bytes | None:
    """The first key behind those with a prefix; None for the end of the database."""
    shorter = prefix.rstrip(b"\xff")
    return shorter[:-1] + bytes([shorter[-1] + 1]) if shorter else None


class ServerBatch(_StateOnServer, WriteBatch):
    """A batch over the changes of a snapshot."""

    __slots__ = ()


class ServerView(_StateOnServer):
    """A view of a snapshot."""

    __slots__ = ()

    def _read_superblock(self) -> Superblock:
        """The superblock, without a jump of the server's clock that no batch has recorded."""
        return cast("ServerClock", self.clock).hold_back(super()._read_superblock())

    def fetch(self, database: Database, keys: Sequence[bytes]) -> list[bytes | None]:
        values: list[bytes | None] = self._raw.fetch(keys, self._databases[database.name])
        return values

    def figures_of(self, database: Database) -> dict[str, int]:
        return self.database_stats()[cast("RecordPlace", self._databases[database.name]).table]

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

    def floor(self, changed: Mapping[RecordPlace, Mapping[bytes, bytes | None]]) -> bytes:
        """The floor of the deadlines after the changes."""
        return floors.following(self._raw.floor, self._raw.first_deadline, changed)

    def _of(self, db: object) -> Any:
        changes = self._changes.get(id(db))
        if changes is None:
            changes = super()._of(db)
            self._places.append(cast("RecordPlace", db))
        return changes

    def changed(self) -> dict[RecordPlace, dict[bytes, bytes | None]]:
        """The changed keys of each database with their values; None for a removed record."""
        return {place: values for place in self._places if (values := self._changes[id(place)].values)}
