"""Marks and counters of the server's store are those that were noted last."""

from __future__ import annotations

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.mark_table import EventTally
from storage.values.counters import COUNTERS
from storage.values.position import MessageId


def test_the_last_mark_of_a_window_counts(store: Store, environment: PostgresEnvironment) -> None:
    """A mark of an earlier window is no mark; the quiet time stands beside."""
    marks = environment.received_marks
    with store.connection.view() as view:
        block = view.superblock
    assert marks.last(block, 9, 1) is None
    marks.note(9, 1, MessageId(1, 2, 3))
    marks.note(9, 1, MessageId(1, 5, -1))
    assert marks.last(block, 9, 1) == MessageId(1, 5, -1)
    assert marks.last(block, 9, 2) is None
    assert marks.quiet_since_ns(block, 9) is None
    marks.note_quiet(9, 77)
    assert (marks.quiet_since_ns(block, 9), marks.last(block, 9, 1)) == (77, MessageId(1, 5, -1))


def test_a_tally_sends_what_was_counted_since() -> None:
    """Once, and not again before a while has passed."""
    tally = EventTally()
    events = [0] * COUNTERS
    events[2] = 5
    assert tally.is_due(0)
    tally.note(events, 1000)
    tally.note(events, 10**12)
    assert not tally.is_empty
    tally.step(10)
    assert tally.is_empty
    assert not tally.is_due(11)


def test_events_are_counted_over_a_reopening(url: str) -> None:
    """What a process has not sent with a commit is sent when it closes."""
    with Store.open(url) as store:
        store.create_topic("t")
        producer = store.create_producer("t")
        for _ in range(5):
            producer.send(b"x")
    with Store.open(url, read_only=True) as store, store.connection.view() as view:
        counters = store.connection.environment.counters(view.superblock)
    assert sum(counters.buckets) >= 6
    assert counters.duration_ns > 0
    assert counters.since_ms is not None
