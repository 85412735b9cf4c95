"""Calls of Python of a serializable read and a row of a scan; `test_calls.py` holds those of whole operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from cProfile import Profile
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import median

import pytest

from benchmarks import accounts
from storage import Store

_KEYS = 200
_WARMUP = 20
_ROUNDS = 11

LIMITS = {"read": 63, "row": 4}
"""The calls of each at most: what it takes today, and a few more."""

Operation = Callable[[], object]


class Scene:
    """A warm store with one table, and operations on it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._table = store.table(accounts.TABLE)
        self._keys = cycle([accounts.key(number) for number in range(_KEYS)])

    def begin_and_read(self) -> None:
        with self._store.transaction() as txn:
            self._table.get(next(self._keys), txn=txn)

    def begin_and_read_twice(self) -> None:
        with self._store.transaction() as txn:
            self._table.get(next(self._keys), txn=txn)
            self._table.get(next(self._keys), txn=txn)

    def scan(self, rows: int) -> None:
        assert len(list(self._table.scan(end=accounts.key(rows)))) == rows

    def scan_in_transaction(self, rows: int) -> None:
        with self._store.transaction() as txn:
            assert len(list(self._table.scan(end=accounts.key(rows), txn=txn))) == rows


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    accounts.create(tmp_path / "store", _KEYS)
    with Store.open(tmp_path / "store") as store:
        yield Scene(store)


def calls(operation: Operation) -> float:
    """The calls of a warm operation, of Python and of C, without those of a few rounds that do more."""
    for _ in range(_WARMUP):
        operation()
    rounds = []
    for _ in range(_ROUNDS):
        profile = Profile()
        profile.enable()
        operation()
        profile.disable()
        rounds.append(sum(entry.callcount for entry in profile.getstats()))
    return median(rounds)


def test_a_serializable_read(scene: Scene) -> None:
    """142 before: the gate, a view, the record of the read, the row."""
    read = calls(scene.begin_and_read_twice) - calls(scene.begin_and_read)
    assert read <= LIMITS["read"]


@pytest.mark.parametrize("name", ["scan", "scan_in_transaction"])
def test_a_row_of_a_scan(scene: Scene, name: str) -> None:
    """19 a row before: the checksum, the fields, the row and its place in the page are left."""
    scan = getattr(scene, name)
    per_row = (calls(partial(scan, _KEYS)) - calls(partial(scan, _KEYS // 2))) / (_KEYS // 2)
    assert per_row <= LIMITS["row"]
