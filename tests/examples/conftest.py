"""A store without topics, and instances of the example at it, each a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.processes.child import Child

Start = Callable[..., Child]


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """Where the store lies. It is verified at the end, whatever was done to it."""
    place = str(tmp_path / "store")
    Store.create(place)
    yield place
    with Store.open(place) as store:
        assert store.maintenance.verify_store(full=True) == []


@pytest.fixture
def start(path: str) -> Iterator[Start]:
    """Starts an instance by its name, on the topic `map`; all are gone before the store is verified."""
    started: list[Child] = []

    def run(name: str, *options: str) -> Child:
        started.append(Child(["-m", "examples.leader_kv", path, "map", name, *options]))
        return started[-1]

    yield run
    for child in started:
        child.close()


@pytest.fixture
def store(path: str, start: Start) -> Iterator[Store]:
    """The store, open in the process of the test."""
    with Store.open(path) as opened:
        yield opened
