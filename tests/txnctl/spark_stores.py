"""Fixtures of the tests on Spark: a store of its own for each test, which the session reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store


@pytest.fixture
def path(tmp_path: Path) -> Iterator[str]:
    """Where an empty store lies. It is verified at the end, whatever was done to it."""
    place = str(tmp_path / "store")
    Store.create(place)
    yield place
    with Store.open(place) as store:
        assert store.maintenance.verify_store(full=True) == []


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    """That store, open."""
    with Store.open(path) as opened:
        yield opened
