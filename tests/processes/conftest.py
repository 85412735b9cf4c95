"""A store on disk with the machine's own clock, and children that use it. Every test ends in a full verify."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests.processes.child import Children


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[str]:
    """Where an empty store lies. It is verified at the end, whatever was done to it."""
    place = str(tmp_path / "store")
    Store.create(place)
    yield place
    with Store.open(place) as store:
        problems = store.maintenance.verify_store(full=True)
    assert problems == []


@pytest.fixture
def path(empty: str) -> str:
    """Where that store lies, with the empty topic `t`."""
    with Store.open(empty) as store:
        store.create_topic("t")
    return empty


@pytest.fixture
def children(path: str) -> Iterator[Children]:
    """Starts children; all of them are gone before the store is verified."""
    started = Children(path)
    yield started
    started.close()


@pytest.fixture
def store(path: str, children: Children) -> Iterator[Store]:
    """The store, open in the process of the test."""
    with Store.open(path) as opened:
        yield opened
