"""The engine: what of a store is one value, and made only when it is asked for."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.schema import PART_SUBSCRIPTION, PART_TABLE, PART_TOPIC
from storage.engine import Engine, _participant
from storage.errors import StoreClosed
from storage.process.clock import ManualClock


def test_it_closes_its_connection(path: str, clock: ManualClock) -> None:
    """Also where the block fails."""
    with Engine.open(path, clock=clock) as engine:
        connection = engine.connection
        engine.connection.check_writable()
    with pytest.raises(StoreClosed):
        connection.check_writable()


def test_parts_are_made_once(store: Store) -> None:
    """The coordinator, and the reaper that works through it."""
    engine = store.engine
    assert engine.coordinator is engine.coordinator
    assert engine.reaper is engine.reaper
    assert engine.locks is engine.connection.environment.locks


@pytest.mark.parametrize("kind", [PART_TOPIC, PART_SUBSCRIPTION, PART_TABLE])
def test_every_kind_of_part_has_its_participant(kind: int) -> None:
    """Which is the same for every store of the process."""
    assert _participant(kind).kind == kind
    assert _participant(kind) is _participant(kind)


def test_a_writer_reaps_before_its_changes_and_a_reader_never(path: str, clock: ManualClock) -> None:
    """The prologue is set once, by whoever writes first."""
    with Engine.open(path, read_only=True, clock=clock) as reader:
        assert reader.connection.environment.writer.prologue is None
        with Engine.open(path, clock=clock) as writer:
            assert writer.connection.environment.writer.prologue == writer.upkeep
            with Engine.open(path, clock=clock):
                assert writer.connection.environment.writer.prologue == writer.upkeep


def test_the_upkeep_of_a_closed_handle_goes_on_for_the_next_one(path: str, clock: ManualClock) -> None:
    """The writer of the process calls the first handle's upkeep, with a retention set also after that is closed."""
    first = Store.open(path, clock=clock)
    first.create_topic("kept")
    first.admin.topics.set_retention("kept", time_ms=0)
    with Store.open(path, clock=clock) as second:
        first.close()
        clock.advance(2)
        second.create_producer("kept").send(b"after")
