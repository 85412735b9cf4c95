"""Stores of an earlier format: readable, and refused for every change until the upgrade.

An earlier format lacks databases, which are empty for readers. Records of an earlier format keep the meaning, so
reading needs no conversion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from storage.actions import Action, Hint
from storage.disk.schema import Database
from storage.disk.view import ReadView
from storage.errors import OldFormat


class OldFormatView(ReadView):
    """A view of a store of an earlier format: databases that the store lacks are empty."""

    __slots__ = ()

    def lacks(self, database: Database) -> bool:
        return database.name not in self._databases

    def get(self, database: Database, key: bytes) -> memoryview | None:
        return None if self.lacks(database) else super().get(database, key)

    def holds(self, database: Database, key: bytes) -> bool:
        return not self.lacks(database) and super().holds(database, key)

    def fetch(self, database: Database, keys: Sequence[bytes]) -> list[bytes | None]:
        return [None] * len(keys) if self.lacks(database) else super().fetch(database, keys)

    def stored(
        self, database: Database, at: bytes, *, reverse: bool = False
    ) -> Iterable[tuple[bytes, bytes]]:
        return () if self.lacks(database) else super().stored(database, at, reverse=reverse)

    def scan(
        self, database: Database, prefix: bytes = b"", start: bytes | None = None, stop: bytes | None = None
    ) -> Iterator[tuple[bytes, memoryview]]:
        return iter(()) if self.lacks(database) else super().scan(database, prefix, start, stop)

    def scan_back(
        self, database: Database, prefix: bytes, before: bytes
    ) -> Iterator[tuple[bytes, memoryview]]:
        return iter(()) if self.lacks(database) else super().scan_back(database, prefix, before)

    def first(
        self, database: Database, prefix: bytes, start: bytes | None = None, stop: bytes | None = None
    ) -> tuple[bytes, memoryview] | None:
        return None if self.lacks(database) else super().first(database, prefix, start, stop)

    def last(self, database: Database, prefix: bytes, at: bytes) -> tuple[bytes, memoryview] | None:
        return None if self.lacks(database) else super().last(database, prefix, at)

    def count(self, database: Database) -> int:
        return 0 if self.lacks(database) else super().count(database)

    def figures_of(self, database: Database) -> dict[str, int]:
        if not self.lacks(database):
            return super().figures_of(database)
        return dict.fromkeys(("psize", "entries", "branch_pages", "leaf_pages", "overflow_pages"), 0)


def refusal(path: str, format_number: int) -> OldFormat:
    """The error for a change of a store of an earlier format."""
    return OldFormat(
        f"{path} has format {format_number}, which this release only reads; nothing was changed",
        hint=Hint(
            "Make a backup, then run `{}`: earlier releases refuse the store from then on.",
            Action("store.maintenance.upgrade_store"),
        ),
        format=format_number,
    )
