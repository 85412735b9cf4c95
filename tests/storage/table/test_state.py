"""The counters of a table: stored apart from those of topics, and never less than nothing."""

from __future__ import annotations

import pytest

from storage.disk.codec import key1
from storage.disk.schema import HEADS
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore
from storage.table import state
from storage.table.state import TableState
from tests.storage.conftest import Scratch


def test_counters_come_back(scratch: Scratch) -> None:
    """Under a key that no topic can have; a batch writes what was changed."""

    def check(batch: WriteBatch) -> None:
        assert state.find(batch, 7) is None
        state.create(batch, 7)
        found = state.find(batch, 7)
        assert found is not None
        assert found.fields() == (0, 0, 0, 0)
        assert batch.get(HEADS, key1(7)) is None
        assert state.find(batch, 8) is None
        state.delete(batch, 7)
        assert state.find(batch, 7) is None

    scratch.run(check)


def test_bytes_hold_every_counter() -> None:
    """Each in its place."""
    assert TableState.decode(memoryview(TableState(1, 4, 3, 2).encode())).fields() == (1, 4, 3, 2)


@pytest.mark.parametrize("wrong", [TableState(keys=-1), TableState(intents=-1), TableState(keys=2, rows=1)])
def test_what_cannot_be_counted_is_not_stored(wrong: TableState) -> None:
    """A key with a value has a row."""
    with pytest.raises(CorruptStore):
        wrong.encode()
