"""Kept reads: the records that a process has read of one commit, for further views and batches of the same commit.

A process that alone uses a store would ask for the same records again and again, a round trip each. Reads are kept
until a further process commits, as the commit number tells. A commit of this process takes over the changes of its
batch.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from storage.disk.postgres.layout import RecordPlace

Stretch = tuple[list[bytes], list[bytes]]
"""Keys and values of neighbouring records, in the order of keys."""

_ID_BYTES: Final = 8
_RECORDS_MAX: Final = 4096
_BYTES_MAX: Final = 1 << 14


Floors = dict[bytes, tuple[int, bytes]]
"""By prefix, a key below which there is no record with the prefix, and the commit from which on there is none. For a
database to which records are only added behind all others."""


class KeptReads:
    """The reads of one commit.

    Attributes:
        number: the number of the commit.
        values: stored values by key of the table; None where there is no record.
        floors: of OPEN_FIRST, by topic; what all reads of the process share.
        views: how many open views use this object.
    """

    __slots__ = ("_stretches", "_unproven", "floors", "number", "values", "views")

    def __init__(self, number: int, floors: Floors | None = None) -> None:
        self.number = number
        self.floors: Floors = {} if floors is None else floors
        self._unproven: Floors = {}
        self.values: dict[bytes, bytes | None] = {}
        self.views = 0
        self._stretches: dict[str, dict[tuple[bytes, bytes, int], Stretch]] = {}

    def stretch(self, place: RecordPlace, which: tuple[bytes, bytes, int]) -> Stretch | None:
        """A stretch of a database that was read before."""
        kept = self._stretches.get(place.name)
        return None if kept is None else kept.get(which)

    def keep_stretch(self, place: RecordPlace, which: tuple[bytes, bytes, int], stretch: Stretch) -> None:
        """Keep a stretch as read, unless it is large."""
        if sum(map(len, stretch[1])) <= _BYTES_MAX:
            self._stretches.setdefault(place.name, {})[which] = stretch

    def floor(self, prefix: bytes) -> bytes:
        """The first key with a prefix that a record may have."""
        number, key = self.floors.get(prefix, (0, prefix))
        return key if number <= self.number else prefix

    def note_floor(self, prefix: bytes, key: bytes, *, is_proven: bool) -> None:
        """Note the first record with a prefix.

        Args:
            is_proven: whether the read is of this commit; otherwise the floor counts from the next commit on, if that
                is made on these reads.
        """
        if len(prefix) == _ID_BYTES and self.floors.get(prefix, (0, b""))[0] <= self.number:
            floors = self.floors if is_proven else self._unproven
            floors[prefix] = self.number, key

    def _copied(self) -> KeptReads:
        copy = KeptReads(self.number, self.floors)
        copy.values = dict(self.values)
        copy._stretches = {name: dict(kept) for name, kept in self._stretches.items()}
        return copy

    def advanced(self, number: int, changes: Mapping[RecordPlace, Mapping[bytes, bytes | None]]) -> KeptReads:
        """The reads of the next commit, with the changes of the batch; a copy where a view uses this object."""
        self.floors.update(self._unproven)
        self._unproven.clear()
        count = len(self.values) + sum(map(len, self._stretches.values()))
        if count > _RECORDS_MAX:
            return KeptReads(number, self.floors)
        reads = self._copied() if self.views else self
        reads.number = number
        for place, changed in changes.items():
            reads._stretches.pop(place.name, None)
            for key, value in changed.items():
                if value is not None and len(value) > _BYTES_MAX:
                    reads.values.pop(place.prefix + key, None)
                else:
                    reads.values[place.prefix + key] = value
        return reads


class ReadsOfProcess:
    """The kept reads that views and batches of a process share."""

    __slots__ = ("_lock", "_reads")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads = KeptReads(0)

    def of_view(self, number: int) -> KeptReads:
        """The reads of a commit, for a view, which gives them back."""
        with self._lock:
            reads = self._reads
            if reads.number != number:
                reads = KeptReads(number, self._reads.floors)
                # A view that began before a commit of this process must not displace newer reads.
                if number > self._reads.number:
                    self._reads = reads
            reads.views += 1
            return reads

    def claim(self, number: int) -> KeptReads:
        """The reads of a commit, for the one batch of the process: no view shares them from now on.

        A batch that is made without the gate may read records of a later commit: such a batch is refused, and its reads
        are dropped.
        """
        with self._lock:
            reads, self._reads = self._reads, KeptReads(number, self._reads.floors)
            if reads.number != number:
                return KeptReads(number, reads.floors)
            return reads._copied() if reads.views else reads

    def give_back(self, reads: KeptReads) -> None:
        """End the use by a view."""
        with self._lock:
            reads.views -= 1

    def advance(
        self, reads: KeptReads, number: int, changes: Mapping[RecordPlace, Mapping[bytes, bytes | None]]
    ) -> None:
        """Take over the changes of a commit of this process, which were made on `reads`."""
        with self._lock:
            self._reads = reads.advanced(number, changes)
