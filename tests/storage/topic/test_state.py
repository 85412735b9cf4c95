"""The state of a topic: its bytes, its positions, its life in the store."""

from __future__ import annotations

import pytest

from storage import Position
from storage.disk.view import WriteBatch
from storage.errors import TopicNotFound
from storage.topic import state as states
from storage.topic.state import TopicState
from tests.storage.conftest import Scratch

TOPIC = 77


def made() -> TopicState:
    return TopicState.new(3, 5, 1000, (10, 20, 30))


def test_a_state_is_read_as_it_was_written() -> None:
    """Every field, each with a value of its own."""
    state = made()
    for number, name in enumerate(TopicState.__slots__, 100):
        setattr(state, name, Position(number, number + 1) if name == "max_read" else number)
    again = TopicState.decode(memoryview(state.encode()))
    for name in TopicState.__slots__:
        assert getattr(again, name) == getattr(state, name)
    assert isinstance(again.max_read, Position)


def test_an_empty_topic_stands_before_its_first_entry() -> None:
    """maxReadPosition and lastConfirmedEntry are `L:-1`, and the epoch is that of the former incarnation."""
    state = made()
    assert str(state.max_read) == str(state.last_confirmed) == "3:-1"
    assert (state.epoch, state.first_ledger, state.messages) == (5, 3, 0)
    assert (state.ledger_entries_max, state.ledger_bytes_max, state.ledger_age_max_ms) == (10, 20, 30)


def test_it_is_found_from_its_creation_to_its_deletion(scratch: Scratch) -> None:
    """Within one batch as well, whatever was changed in between."""

    def check(batch: WriteBatch) -> None:
        with pytest.raises(TopicNotFound):
            states.load(batch, TOPIC)
        states.create(batch, TOPIC, made())
        states.load(batch, TOPIC).messages += 1
        assert states.load(batch, TOPIC).messages == 1
        states.delete(batch, TOPIC)
        with pytest.raises(TopicNotFound):
            states.load(batch, TOPIC)

    scratch.run(check)
