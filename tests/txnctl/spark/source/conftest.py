"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest

from storage import Store


@pytest.fixture
def filled(store: Store) -> Store:
    """A table of a hundred rows, one of them deleted."""
    store.create_table("t")
    store.table("t").import_rows((b"%03d" % number, b"v%d" % number) for number in range(100))
    store.table("t").delete(b"050")
    return store
