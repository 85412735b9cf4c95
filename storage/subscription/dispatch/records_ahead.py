"""Records of a subscription that a walk meets in order, each looked up once."""

from __future__ import annotations

from storage.disk.codec import key1
from storage.disk.schema import Database
from storage.disk.view import ReadView


class RecordsAhead:
    """The next record of a subscription at or after a position, looked up again only after the walk has passed it."""

    __slots__ = ("_at", "_database", "_prefix", "_record", "_view")

    def __init__(self, view: ReadView, database: Database, subscription_id: int) -> None:
        self._view = view
        self._database = database
        self._prefix = key1(subscription_id)
        self._record: tuple[bytes, memoryview] | None = None
        self._at: bytes | None = None

    def at(self, key: bytes) -> memoryview | None:
        """The record with exactly this key; keys are asked for in order."""
        if self._at is None or (self._record is not None and self._record[0] < key):
            self._record = self._view.first(self._database, self._prefix, key)
            self._at = key
        return self._record[1] if self._record is not None and self._record[0] == key else None
