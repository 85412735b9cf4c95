"""Names of deleted topics: their records are bounded, and no position fits a later topic."""

from __future__ import annotations

from storage import Position, Store
from storage.disk.schema import TOPICS
from storage.limits import FORMER_TOPICS_RETENTION_MS
from storage.process.clock import ManualClock

MONTH_S = FORMER_TOPICS_RETENTION_MS / 1000


def names(store: Store) -> int:
    with store.connection.view() as view:
        return view.count(TOPICS)


def collect(store: Store) -> int:
    """Collect garbage as the dry run says; the names that went."""
    expected = store.maintenance.collect_garbage(dry_run=True).collected.forgotten
    done = store.maintenance.collect_garbage().collected.forgotten
    assert done == expected
    return done.topic_names_forgotten


def first_position(store: Store, topic: str) -> tuple[Position, int]:
    """Create a topic, and send a message to it as its owner: position and epoch."""
    store.create_topic(topic)
    with store.create_producer(topic, access_mode="Exclusive") as producer:
        assert producer.topic_epoch is not None
        return producer.send(b"m").position, producer.topic_epoch


def test_topics_of_ever_new_names_leave_one_record(store: Store, clock: ManualClock) -> None:
    """A name keeps its record for a month."""
    for number in range(20):
        first_position(store, f"job-{number}")
        store.admin.topics.delete_topic(f"job-{number}")
    before = names(store)
    assert (collect(store), before) == (0, 21)
    clock.advance(MONTH_S + 1)
    assert (collect(store), names(store)) == (20, 1)
    assert (collect(store), names(store)) == (0, 1)


def test_a_later_topic_of_a_forgotten_name_continues_positions_and_epochs(
    store: Store, clock: ManualClock
) -> None:
    """As the topic does whose name is still known: a checkpoint or a token of the former one never fits."""
    for _ in range(3):
        former = first_position(store, "jobs")
        store.admin.topics.delete_topic("jobs")
    clock.advance(MONTH_S + 1)
    assert collect(store) == 1
    position, epoch = first_position(store, "jobs")
    assert position > former[0]
    assert epoch > former[1]


def test_a_name_in_use_again_is_kept(store: Store, clock: ManualClock) -> None:
    store.create_topic("jobs")
    store.admin.topics.delete_topic("jobs")
    store.create_topic("jobs")
    clock.advance(MONTH_S + 1)
    assert (collect(store), store.has_topic("jobs")) == (0, True)
