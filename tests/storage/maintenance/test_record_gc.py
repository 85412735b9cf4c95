"""gc of sequence ids and of topic names works in store transactions of a bounded size, and goes on after a kill."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from storage import Store, faults
from storage.disk.schema import SEQUENCES, TOPICS
from storage.limits import FORMER_TOPICS_RETENTION_MS
from storage.process.clock import ManualClock
from storage.topic import former_topics, sequence_retention

NAMES = 12


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (sequence_retention, former_topics):
        monkeypatch.setattr(module, "GC_STEP_RECORDS", 5)
        monkeypatch.setattr(module, "GC_LOOK_RECORDS", 7)
    yield
    faults.disarm()


@pytest.fixture
def old(store: Store, clock: ManualClock) -> Store:
    """Names of producers that are long gone, on a trimmed topic, and of topics deleted long ago."""
    for number in range(NAMES):
        with store.create_producer("t", producer_name=f"p{number}", connected=False) as producer:
            producer.send(b"m")
        store.create_topic(f"job-{number}")
        store.admin.topics.delete_topic(f"job-{number}")
    store.admin.topics.truncate_topic("t")
    clock.advance(FORMER_TOPICS_RETENTION_MS / 1000 + 1)
    return store


def left(store: Store) -> tuple[int, int]:
    """Ranges of sequence ids, and records of topic names."""
    with store.connection.view() as view:
        return view.count(SEQUENCES), view.count(TOPICS)


def test_it_is_done_in_steps(old: Store) -> None:
    """Three steps of five records for each kind, and the audit record."""
    with old.connection.view() as view:
        before = view.superblock.commits
    forgotten = old.maintenance.collect_garbage().collected.forgotten
    assert (forgotten, left(old)) == ((NAMES, NAMES), (0, 1))
    with old.connection.view() as view:
        assert view.superblock.commits - before <= 2 * 3 + 2


@pytest.mark.parametrize("step", range(1, 6))
def test_a_run_that_was_interrupted_is_gone_on_with(old: Store, step: int) -> None:
    """Between any two steps: what went is gone, and the next run takes the rest."""
    reached = 0

    def kill() -> None:
        nonlocal reached
        reached += 1
        if reached == step:
            raise KeyboardInterrupt

    faults.arm("table.between_gc_steps", kill)
    with pytest.raises(KeyboardInterrupt):
        old.maintenance.collect_garbage()
    faults.disarm()
    ranges, names = left(old)
    assert 0 < ranges + names - 1 < 2 * NAMES
    assert old.maintenance.verify_store() == []
    assert old.maintenance.collect_garbage().collected.forgotten == (ranges, names - 1)
    assert left(old) == (0, 1)
