"""Rivals for the topic `t` of every test here, under a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage import Store
from tests.storage.topic.producers.rivals import Rivals, TurnClock


@pytest.fixture
def clock() -> TurnClock:
    """A clock under which waiters move only when the test lets them."""
    return TurnClock()


@pytest.fixture
def rivals(store: Store, path: str, clock: TurnClock) -> Iterator[Rivals]:
    """Other processes, as it were, on the store with the topic `t`."""
    made = Rivals(path, clock)
    yield made
    made.close()
