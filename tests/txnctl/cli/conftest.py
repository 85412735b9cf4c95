"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import Store


@pytest.fixture
def store_path(tmp_path: Path) -> str:
    """A store with one topic, found to be whole at the end."""
    path = str(tmp_path / "s")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("orders")
    return path
