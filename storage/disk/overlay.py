"""Changes kept in memory over a read transaction of LMDB, with the calls of a write transaction.

A dry run changes an overlay: it sees its own changes as a batch does, and holds no writer gate, however long it takes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from types import TracebackType
from typing import Any


class _Changes:
    """The changes of one database.

    Attributes:
        values: changed keys with their values; None for a removed record.
        live: the changed keys that have a value, in order.
        entries: records more than in the database itself; negative for fewer.
    """

    __slots__ = ("_first", "_last", "entries", "live", "values")

    def __init__(self) -> None:
        self.values: dict[bytes, bytes | None] = {}
        self.live: list[bytes] = []
        self.entries = 0
        # Stretches of the database of which every key is changed, so that a search jumps over them.
        self._first: list[bytes] = []
        self._last: list[bytes] = []

    def put(self, key: bytes, value: bytes) -> None:
        if self.values.get(key) is None:
            insort(self.live, key)
        self.values[key] = value

    def delete(self, key: bytes) -> None:
        if self.values.get(key) is not None:
            del self.live[bisect_left(self.live, key)]
        self.values[key] = None

    def last_of_stretch(self, key: bytes) -> bytes | None:
        """The last key of the known stretch around a key, or None."""
        at = bisect_right(self._first, key) - 1
        return self._last[at] if at >= 0 and self._last[at] >= key else None

    def first_of_stretch(self, key: bytes) -> bytes | None:
        """The first key of the known stretch around a key, or None."""
        at = bisect_right(self._first, key) - 1
        return self._first[at] if at >= 0 and self._last[at] >= key else None

    def note_stretch(self, first: bytes, last: bytes) -> None:
        """Note that every key of the database between two keys, both included, is changed."""
        begin, end = bisect_left(self._last, first), bisect_right(self._first, last)
        if begin < end:
            first, last = min(first, self._first[begin]), max(last, self._last[end - 1])
        self._first[begin:end] = [first]
        self._last[begin:end] = [last]


class Overlay:
    """See the module: a transaction that the batch of a dry run takes for one of LMDB."""

    __slots__ = ("_changes", "_raw")

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._changes: dict[int, _Changes] = {}

    def end(self) -> None:
        """Let go of the transaction, as `ReadView.end` does."""
        self._raw = None

    def _of(self, db: object) -> _Changes:
        return self._changes.setdefault(id(db), _Changes())

    def get(self, key: bytes, *, db: object) -> Any:
        """The value under a key, or None."""
        values = self._of(db).values
        return values[key] if key in values else self._raw.get(key, db=db)

    def put(self, key: bytes, value: bytes, *, db: object) -> None:
        """Keep a value under a key."""
        changes = self._of(db)
        changes.entries += self.get(key, db=db) is None
        changes.put(key, value)

    def delete(self, key: bytes, *, db: object) -> bool:
        """Remove a record; False if there is none."""
        changes, is_stored = self._of(db), self.get(key, db=db) is not None
        if is_stored:
            changes.entries -= 1
            changes.delete(key)
        return is_stored

    def cursor(self, *, db: object, **bounds: bytes) -> OverlayCursor:
        """A cursor over a database with its changes; over more than that where bounds are given, for stored records."""
        return OverlayCursor(self, db, self._raw.cursor(db=db, **bounds), self._of(db))

    def stat(self, db: object) -> dict[str, int]:
        """LMDB's figures of a database, with the number of records as changed."""
        figures: dict[str, int] = self._raw.stat(db)
        return {**figures, "entries": figures["entries"] + self._of(db).entries}

    def id(self) -> int:
        """The number that the commit would have."""
        number: int = self._raw.id()
        return number + 1


class OverlayCursor:
    """A cursor with the calls of LMDB's. Without a place its key is empty."""

    __slots__ = ("_changes", "_db", "_key", "_overlay", "_raw")

    def __init__(self, overlay: Overlay, db: object, raw: Any, changes: _Changes) -> None:
        self._overlay = overlay
        self._db = db
        self._raw = raw
        self._changes = changes
        self._key = b""

    def __enter__(self) -> OverlayCursor:
        self._raw.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._raw.__exit__(kind, error, traceback)

    def key(self) -> bytes:
        return self._key

    def value(self) -> Any:
        return self._overlay.get(self._key, db=self._db) if self._key else b""

    def first(self) -> bool:
        return self._go(self._following(self._raw.first(), 0))

    def last(self) -> bool:
        live = self._changes.live
        return self._go(self._preceding(self._raw.last(), len(live)))

    def set_range(self, key: bytes) -> bool:
        return self._go(self._following(self._raw.set_range(key), bisect_left(self._changes.live, key)))

    def next(self) -> bool:
        is_found = self._raw.set_range(self._key)
        if is_found and self._raw.key() == self._key:
            is_found = self._raw.next()
        return self._go(self._following(is_found, bisect_right(self._changes.live, self._key)))

    def prev(self) -> bool:
        is_found = self._raw.prev() if self._raw.set_range(self._key) else self._raw.last()
        return self._go(self._preceding(is_found, bisect_left(self._changes.live, self._key)))

    def delete(self) -> bool:
        """Remove the record; the cursor is at the next one then."""
        is_deleted = bool(self._key) and self._overlay.delete(self._key, db=self._db)
        self.next()
        return is_deleted

    def iternext(self) -> Iterator[tuple[bytes, Any]]:
        """Yield the records from the cursor on."""
        is_found = bool(self._key)
        while is_found:
            yield self._key, self.value()
            is_found = self.next()

    def iterprev(self) -> Iterator[tuple[bytes, Any]]:
        """Yield the records from the cursor back."""
        is_found = bool(self._key)
        while is_found:
            yield self._key, self.value()
            is_found = self.prev()

    def _go(self, key: bytes | None) -> bool:
        self._key = key or b""
        return key is not None

    def _following(self, is_found: bool, index: int) -> bytes | None:
        """The first key of both: of LMDB's cursor on, without changed keys, and of changed keys from an index on."""
        raw, changes = self._raw, self._changes
        begin = last = None
        while is_found and raw.key() in changes.values:
            begin, last = begin or raw.key(), raw.key()
            known = changes.last_of_stretch(last)
            if known is not None and known > last:
                last = known
                is_found = raw.set_range(known)
            is_found = is_found and (raw.key() != last or raw.next())
        if begin is not None and last is not None:
            changes.note_stretch(begin, last)
        own = changes.live[index] if index < len(changes.live) else None
        stored = raw.key() if is_found else None
        return min(own, stored) if own is not None and stored is not None else own or stored

    def _preceding(self, is_found: bool, index: int) -> bytes | None:
        """The last key of both: of LMDB's cursor back, without changed keys, and of changed keys before an index."""
        raw, changes = self._raw, self._changes
        begin = last = None
        while is_found and raw.key() in changes.values:
            begin, last = raw.key(), last or raw.key()
            known = changes.first_of_stretch(begin)
            if known is not None and known < begin:
                begin = known
                raw.set_range(known)
            is_found = raw.prev()
        if begin is not None and last is not None:
            changes.note_stretch(begin, last)
        own = changes.live[index - 1] if index > 0 else None
        stored = raw.key() if is_found else None
        return max(own, stored) if own is not None and stored is not None else own or stored
