"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest

from storage import Producer, Store


@pytest.fixture
def producer(store: Store) -> Producer:
    """A producer of `t`."""
    return store.create_producer("t")
