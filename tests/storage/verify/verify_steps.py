"""Steps that the tests of verify share."""

from __future__ import annotations

from collections.abc import Callable

from storage.disk.view import WriteBatch
from tests.storage.damage import Break

TOPIC, SUBSCRIPTION = 1, 1


def add(name: str, by: int = 1) -> Callable[[object], None]:
    """Changes a counter."""
    return lambda record: setattr(record, name, getattr(record, name) + by)


def remove_first(database: object, prefix: bytes = b"") -> Break:
    def run(batch: WriteBatch) -> None:
        key = next(batch.keys(database, prefix))  # type: ignore[arg-type]
        assert batch.delete(database, key)  # type: ignore[arg-type]

    return run
