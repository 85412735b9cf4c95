"""The number of records that a piece of work reads: a bound on work that does not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from storage.disk import view
from storage.disk.schema import Database


class RecordsRead:
    """Counts of records that were read, each with its checksum, by name of the database."""

    def __init__(self) -> None:
        self.by_database: dict[str, int] = {}

    @property
    def total(self) -> int:
        return sum(self.by_database.values())


@contextmanager
def records_read() -> Iterator[RecordsRead]:
    """Count the records that are read within the block, by this process."""
    counted, unseal = RecordsRead(), view.unseal

    def counting(database: Database, key: bytes, data: memoryview) -> memoryview:
        counted.by_database[database.name] = counted.by_database.get(database.name, 0) + 1
        return unseal(database, key, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view, "unseal", counting)
        yield counted
