"""Entries with delivery times, and their blocks: `storage/txn/timed_entries.py`."""

from __future__ import annotations

from random import Random

import pytest

from storage import EARLIEST, Position, Store, SubscriptionType
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics, state as states
from storage.txn import timed_entries
from storage.txn.timed_entries import TimedBlock
from tests.storage.records_read import records_read


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_entries, "BLOCK_TIMES", 16)


def blocks(store: Store) -> list[TimedBlock]:
    with store.connection.view() as view:
        return list(timed_entries.blocks(view, topics.get(view, "t").topic_id))


def counted(store: Store, after: Position, is_committed: bool) -> int:
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        through = states.load(view, topic_id).last_confirmed
        now_ms = view.clock.wall_ms()
        return timed_entries.count_early(view, topic_id, after, through, now_ms, is_committed=is_committed)


def test_any_stretch_is_counted_as_the_log_has_it(store: Store, clock: ManualClock) -> None:
    """Over blocks, parts of blocks and the tail; at any time, with and without aborted messages."""
    random, producer = Random(7), store.create_producer("t", create_topic=True)
    for _ in range(60):
        times = [random.choice([None, random.randrange(1, 50)]) for _ in range(random.choice([1, 1, 4, 40]))]
        with store.transaction() as txn:
            producer.send_batch(
                [b"x"] * len(times), deliver_after=times, txn=txn if random.random() < 0.4 else None
            )
            if random.random() < 0.3:
                txn.abort()
    assert len(blocks(store)) > 10
    entries = list(store.reader("t", isolation_level="read-uncommitted").entries())
    for _ in range(6):
        now_ms = clock.wall_ms()
        for after in [Position(1, -1), *(entry.position for entry in random.sample(entries, 12))]:
            for is_committed in (False, True):
                early = sum(
                    due_ms is not None and due_ms > now_ms
                    for entry in entries
                    if entry.position > after
                    and not (is_committed and str(entry.txn_state).endswith("ABORTED"))
                    for due_ms in entry.delivery_times or ()
                )
                assert counted(store, after, is_committed) == early
        clock.advance(9)
    assert store.maintenance.verify_store(full=True) == []


def test_a_count_reads_a_record_for_a_block(store: Store) -> None:
    """However many messages wait, and wherever the subscription stands."""
    store.admin.subscriptions.create_subscription(
        "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
    )
    producer = store.create_producer("t")
    for number in range(400):
        producer.send(b"x", deliver_after=60 + number)
    with records_read() as read:
        row = store.reports.subscription_stats("t", "s").row.stats
    assert (row.delayed, row.visible) == (400, 0)
    assert len(blocks(store)) == 25
    assert read.total < 80


def test_entries_behind_an_open_transaction_come_into_blocks_later(store: Store) -> None:
    """A block has ended transactions alone."""
    producer = store.create_producer("t", create_topic=True)
    txn = store.begin_transaction()
    producer.send(b"x", txn=txn)
    for _ in range(64):
        producer.send(b"x", deliver_after=60)
    assert blocks(store) == []
    store.commit_transaction(txn)
    for _ in range(32):
        producer.send(b"x", deliver_after=60)
    assert len(blocks(store)) == 4
    assert store.maintenance.verify_store(full=True) == []


def test_records_go_with_their_entries(store: Store) -> None:
    """Trimmed or deleted with the topic."""
    store.admin.topics.delete_topic("t")
    store.create_topic("t", ledger_entries_max=10)
    producer = store.create_producer("t")
    for _ in range(55):
        producer.send(b"x", deliver_after=60)
    store.admin.topics.set_retention("t", time_ms=0)
    store.admin.topics.trim_topic("t")
    store.maintenance.collect_garbage()
    with store.connection.view() as view:
        kept = [entry.at for entry in timed_entries.entries(view, topics.get(view, "t").topic_id)]
    assert len(kept) <= 10
    assert store.maintenance.verify_store(full=True) == []
    producer.close()
    store.admin.topics.delete_topic("t")
    store.maintenance.purge_deleted()
    assert store.maintenance.verify_store(full=True) == []
