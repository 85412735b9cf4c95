"""Runs of compaction: steps, kills, two at once, thresholds, gc, removal."""

from __future__ import annotations

import pytest

from storage import (
    Position,
    Store,
    faults,
)
from storage.errors import InvalidValue
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.txn import compaction
from storage.txn.aborted import AbortedSet
from tests.storage.txn.compaction_steps import compact, count, read, send, send_batch, step_by_step


class Killed(BaseException):
    """Stands for a kill: nothing below catches it."""


def test_a_step_is_bounded_also_within_one_entry(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of ten thousand keys is compacted in many steps, and read as one whole at each."""
    monkeypatch.setattr(compaction, "COMPACTION_STEP_MESSAGES", 100)
    send(store, *((f"k{number}", "old") for number in range(0, 1000, 300)))
    compact(store)
    send_batch(store, *((f"k{number}", str(number)) for number in range(1000)))
    newest = {f"k{number}": str(number) for number in range(1000)}
    steps = 0
    for _ in step_by_step(store):
        steps += 1
        assert {key: value for _, key, value in read(store)} == newest
    assert steps == 10
    assert len(read(store)) == 1000


@pytest.mark.parametrize("point", ["topic.half_compacted", "topic.between_compaction_steps"])
def test_a_compaction_that_was_killed_goes_on(
    store: Store, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step it is killed in, the view is complete, and the next run finishes it."""
    monkeypatch.setattr(compaction, "COMPACTION_STEP_MESSAGES", 3)
    send(store, *((f"k{number % 7}", str(number)) for number in range(40)))
    newest = {f"k{number % 7}": str(number) for number in range(40)}
    reached = 0

    def kill() -> None:
        nonlocal reached
        reached += 1
        raise Killed

    for _ in range(3):
        faults.arm(point, kill)
        with pytest.raises(Killed):
            compact(store)
        faults.disarm()
        assert {key: value for _, key, value in read(store)} == newest
    compact(store)
    assert reached == 3
    assert sorted(value or "" for _, _, value in read(store)) == [str(number) for number in range(33, 40)]


def test_two_compactions_of_a_topic_help_each_other(store: Store) -> None:
    """A step that was prepared before another process moved the horizon changes nothing."""
    send(store, ("a", "1"), ("a", "2"))
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        topic = OpenTopic.load(view, topic_id)
        state = compaction_state.CompactionState()
        stretch = compaction.prepare(topic, state, topic.state.max_read, AbortedSet(), [])
    compact(store)
    assert stretch is not None
    assert (
        store.connection.write(lambda batch: compaction.apply(batch, topic_id, stretch)) == compaction.NOTHING
    )
    assert read(store) == [("1:1", "a", "2")]


def test_truncation_and_deletion_remove_the_view(store: Store) -> None:
    """A truncated topic begins an empty view, which counts on; of a deleted one no record is left."""
    send(store, ("a", "1"), ("b", None))
    compact(store)
    store.admin.topics.truncate_topic("t")
    assert (read(store), count(store)) == ([], 0)
    send(store, ("a", "2"), ("a", "3"))
    compact(store)
    assert read(store) == [("2:1", "a", "3")]
    store.admin.topics.delete_topic("t")
    assert count(store) == 0


def test_a_view_that_is_removed_holds_nothing_back(store: Store) -> None:
    """Its records go, and the log is read and trimmed as if it had never been compacted."""
    store.admin.topics.set_retention("t", time_ms=0)
    send(store, ("a", "1"))
    compact(store)
    send(store, ("a", "2"))
    done = store.admin.topics.remove_compacted("t").effects
    assert (done.replaced, done.view.horizon, count(store)) == (1, None, 0)
    assert read(store) == [("1:0", "a", "1"), ("1:1", "a", "2")]
    assert store.admin.topics.trim_topic("t").effects.held_by is None


# The threshold


def test_writers_compact_a_topic_beyond_its_threshold(store: Store, clock: ManualClock) -> None:
    """Without any other command: each write does a little while more than the threshold is not compacted."""
    store.admin.topics.set_compaction("t", threshold=1000)
    for number in range(200):
        send(store, (f"k{number % 5}", str(number)))
        clock.advance(2)
    row = store.reports.topic_compaction("t").compaction
    assert row is not None
    assert row.uncompacted_bytes <= 1500
    assert row.messages == 5
    store.admin.topics.set_compaction("t", threshold="unset")
    for number in range(100):
        send(store, ("k", str(number)))
        clock.advance(2)
    assert store.reports.topic_compaction("t").compaction.uncompacted_bytes > 5000  # type: ignore[union-attr]


def test_gc_compacts_a_topic_beyond_its_threshold(store: Store) -> None:
    """The dry run says how many topics; the run compacts them to the end."""
    store.admin.topics.set_compaction("t", threshold=100)
    send(store, ("a", "1"), ("a", "2"), ("a", "3"))
    assert store.maintenance.collect_garbage(dry_run=True).collected.topics_compacted == 1
    assert store.maintenance.collect_garbage().collected.topics_compacted == 1
    assert read(store) == [("1:2", "a", "3")]
    assert store.maintenance.collect_garbage().collected.topics_compacted == 0


@pytest.mark.parametrize("hard", ["off", "trim"])
def test_gc_trims_in_one_run_what_it_has_compacted(store: Store, clock: ManualClock, hard: str) -> None:
    """The view takes the messages over before their originals go; the dry run says so."""
    store.admin.topics.set_compaction("t", threshold=100)
    store.admin.topics.set_retention("t", time_ms=1000, hard=hard)
    for number in range(20):
        send(store, (f"k{number % 3}", str(number)))
    clock.advance(10)
    store.connection.environment.writer.trims_on_the_way = False
    plan = store.maintenance.collect_garbage(dry_run=True).collected
    done = store.maintenance.collect_garbage().collected
    assert (plan.topics_compacted, plan.messages_trimmed) == (1, 20)
    assert (done.topics_compacted, done.messages_trimmed) == (1, 20)
    assert [row[2] for row in read(store)] == ["17", "18", "19"]
    assert read(store, compacted=False) == []


@pytest.mark.parametrize("wrong", [0, -1, "always", 1.5, True])
def test_a_threshold_out_of_bounds_is_refused(store: Store, wrong: object) -> None:
    with pytest.raises(InvalidValue, match="threshold"):
        store.admin.topics.set_compaction("t", threshold=wrong)  # type: ignore[arg-type]


def test_the_dry_run_counts_what_the_run_examines(store: Store) -> None:
    """Aborted messages and markers not."""
    txn = store.begin_transaction()
    send(store, ("a", "1"), ("a", "2"))
    send(store, ("a", "never"), txn=txn)
    store.admin.transactions.abort_transaction(txn)
    dry = store.admin.topics.compact_topic("t", dry_run=True).effects
    done = store.admin.topics.compact_topic("t", reason="by hand").effects
    assert dry.examined == done.examined == 2
    assert (done.view.messages, done.view.horizon) == (1, Position(1, 3))
    assert [record.action for record in store.reports.list_audit_records()][:1] == ["topics compact"]
