"""Count the operations of LMDB in batches and in views: work under the writer gate and beside it, without a clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from storage import Store
from storage.disk.lmdb.environment import LmdbEnvironment


class Tally:
    """A number of operations.

    Attributes:
        reads: look-ups, steps of cursors, and questions for the number of records of a database.
        writes: records put or deleted.
    """

    def __init__(self) -> None:
        self.reads = self.writes = 0

    @property
    def total(self) -> int:
        return self.reads + self.writes


class Operations(Tally):
    """The operations of one stretch of a test: those of batches, and beside them those of views.

    Attributes:
        viewed: the operations of views, which `total` leaves out.
        views: the number of views.
    """

    def __init__(self) -> None:
        super().__init__()
        self.viewed, self.views = Tally(), 0
        self._begun: list[int] = []

    def begin(self) -> None:
        """Note the begin of a write transaction."""
        self._begun.append(self.total)

    @property
    def most(self) -> int:
        """The operations of the write transaction with the most."""
        ends = [*self._begun[1:], self.total]
        return max((end - begin for begin, end in zip(self._begun, ends, strict=True)), default=0)

    @property
    def overall(self) -> int:
        """The operations of batches and views."""
        return self.total + self.viewed.total


class _Cursor:
    def __init__(self, raw: Any, operations: Tally) -> None:
        self._raw, self._operations = raw, operations

    def __enter__(self) -> _Cursor:
        self._raw.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._raw.__exit__(*exc)

    def key(self) -> Any:
        return self._raw.key()

    def value(self) -> Any:
        return self._raw.value()

    def iternext(self) -> Iterator[Any]:
        for item in self._raw.iternext():
            self._operations.reads += 1
            yield item

    def iterprev(self) -> Iterator[Any]:
        for item in self._raw.iterprev():
            self._operations.reads += 1
            yield item

    def delete(self) -> Any:
        self._operations.writes += 1
        return self._raw.delete()

    def __getattr__(self, name: str) -> Any:
        self._operations.reads += 1
        return getattr(self._raw, name)


class _Transaction:
    def __init__(self, raw: Any, operations: Tally) -> None:
        self._raw, self._operations = raw, operations

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self._operations.reads += 1
        return self._raw.get(*args, **kwargs)

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self._operations.writes += 1
        return self._raw.put(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> Any:
        self._operations.writes += 1
        return self._raw.delete(*args, **kwargs)

    def stat(self, *args: Any, **kwargs: Any) -> Any:
        self._operations.reads += 1
        return self._raw.stat(*args, **kwargs)

    def cursor(self, *args: Any, **kwargs: Any) -> _Cursor:
        return _Cursor(self._raw.cursor(*args, **kwargs), self._operations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


class _Environment:
    def __init__(self, raw: Any, operations: Operations) -> None:
        self._raw, self._operations = raw, operations

    def begin(self, *args: Any, **kwargs: Any) -> Any:
        raw = self._raw.begin(*args, **kwargs)
        if not kwargs.get("write"):
            self._operations.views += 1
            return _Transaction(raw, self._operations.viewed)
        self._operations.begin()
        return _Transaction(raw, self._operations)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)


@contextmanager
def counted(store: Store) -> Iterator[Operations]:
    """Count the operations of the store's batches and views."""
    environment = store.connection.environment
    assert isinstance(environment, LmdbEnvironment)
    data_map = environment.data_map
    raw, operations = data_map.raw, Operations()
    data_map.raw = _Environment(raw, operations)
    try:
        yield operations
    finally:
        data_map.raw = raw
