"""Missing records: whatever a record says must be there is there, or the answer is `corrupt`.

A checksum proves a record that is found. One flipped bit in the header of a page of LMDB can hide the last records of
that page, and no read of those that are left fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage import EARLIEST, LATEST, MessageId, OnOpen, Position, Store, SubscriptionType
from storage.disk.codec import key3
from storage.disk.schema import (
    ABORTED,
    AWAITED,
    DELAYED,
    DELAYED_DUE,
    DELIVERIES,
    ENTRIES,
    LEDGERS,
    OPEN_FIRST,
    PENDING,
    ROWS,
    TXN_PENDING,
    TXN_RUNS,
    Database,
)
from storage.disk.view import SUPERBLOCK_KEY, WriteBatch
from storage.errors import CorruptStore
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics

Ask = Callable[[Store], object]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of two ledgers, 1:0..1:2 and 2:0..2:1, that is not verified at the end."""
    Store.create(tmp_path / "store", clock=ManualClock())
    with Store.open(tmp_path / "store", clock=ManualClock()) as opened:
        opened.create_topic("t", ledger_entries_max=3)
        opened.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
        producer = opened.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number)
        yield opened


def hide(store: Store, database: Database, *keys: bytes) -> None:
    """Remove the named records, or else the last record of a database."""

    def change(batch: WriteBatch) -> None:
        for key in keys or [list(batch.keys(database))[-1]]:
            assert batch.delete(database, key)

    store.connection.write(change)


def hide_entries(store: Store, *positions: tuple[int, int]) -> None:
    """Remove entries of the topic."""
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
    hide(store, ENTRIES, *(key3(topic_id, *at) for at in positions))


def read_on(store: Store, start: Position) -> object:
    """Read all messages from a position on."""
    with store.reader("t", start=start) as reader:
        return reader.read_batch(99)


def publish_time(store: Store) -> int:
    """The wall time at which the topic was written."""
    return store.connection.clock.wall_ms()


SCANS: dict[str, Ask] = {
    "reader": lambda store: read_on(store, Position(1, 0)),
    "topic_log": lambda store: list(store.reports.topic_log("t")),
    "peek_messages": lambda store: store.reports.peek_messages("t", "s", 99),
    "receive": lambda store: store.subscribe("t", "s").receive_batch(99, timeout=0),
    "skip": lambda store: store.admin.subscriptions.clear_backlog("t", "s"),
}
ENDS: dict[str, Ask] = {
    "last_message_id": lambda store: store.reports.last_message_id("t"),
    "position_at": lambda store: store.reports.position_at("t", publish_time(store) + 1),
    "from_the_last": lambda store: read_on(store, Position(2, 1)),
}


@pytest.mark.parametrize("ask", [*SCANS.values(), *ENDS.values()], ids=[*SCANS, *ENDS])
def test_entries_at_the_end_of_the_log(store: Store, ask: Ask) -> None:
    """The topic's state has the last entry."""
    hide_entries(store, (2, 1))
    with pytest.raises(CorruptStore):
        ask(store)


@pytest.mark.parametrize("ask", SCANS.values(), ids=SCANS)
@pytest.mark.parametrize(
    "positions", [[(1, 2)], [(1, 0)], [(1, 0), (1, 1), (1, 2)], [(2, 0), (2, 1)], [(2, 0)]]
)
def test_entries_before(store: Store, ask: Ask, positions: list[tuple[int, int]]) -> None:
    """The records of closed ledgers count their entries."""
    hide_entries(store, *positions)
    with pytest.raises(CorruptStore):
        ask(store)


def test_the_rest_of_a_closed_ledger(store: Store) -> None:
    """A reader that begins at a missing entry does not begin with the next ledger."""
    hide_entries(store, (1, 1), (1, 2))
    with pytest.raises(CorruptStore):
        read_on(store, Position(1, 1))
    with pytest.raises(CorruptStore):
        store.subscribe("t", "s").acknowledge_cumulative(MessageId(1, 2))


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.reports.topic_stats_internal("t"),
        lambda store: store.reports.topic_extents(["t"]),
        lambda store: store.reports.position_at("t", 0),
    ],
)
def test_the_record_of_a_ledger(store: Store, ask: Ask) -> None:
    """Ledger ids of a topic are dense."""
    hide(store, LEDGERS)
    with pytest.raises(CorruptStore):
        ask(store)


def test_a_segment_of_the_aborted_set(store: Store) -> None:
    """The topic's state counts aborted transactions."""
    txn = store.begin_transaction()
    store.create_producer("t").send(b"x", txn=txn)
    store.admin.transactions.abort_transaction(txn)
    hide(store, ABORTED)
    with pytest.raises(CorruptStore):
        read_on(store, Position(1, 0))
    with pytest.raises(CorruptStore):
        store.reports.topic_stats_internal("t")


def test_the_index_of_open_transactions(store: Store) -> None:
    """A commit never moves maxReadPosition over the messages of a transaction that the index has lost."""
    producer, txns = store.create_producer("t"), [store.begin_transaction() for _ in range(3)]
    for txn in txns:
        producer.send(b"x", txn=txn)
    with store.connection.view() as view:
        second = sorted(view.keys(OPEN_FIRST))[1]
    hide(store, OPEN_FIRST, second)
    with pytest.raises(CorruptStore):
        store.commit_transaction(txns[0])
    with pytest.raises(CorruptStore):
        store.reports.topic_stats_internal("t")


@pytest.mark.parametrize("database", [PENDING, TXN_PENDING], ids=str)
def test_a_pending_acknowledgement(store: Store, database: Database) -> None:
    """A transaction counts the entries that it acknowledges, and commits all of them or none."""
    txn, consumer = store.begin_transaction(), store.subscribe("t", "s")
    for message in consumer.receive_batch(3, timeout=0):
        consumer.acknowledge(message, txn=txn)
    hide(store, database)
    with pytest.raises(CorruptStore):
        store.commit_transaction(txn)


def test_a_delivery_with_free_messages(store: Store) -> None:
    """The cursor counts entries with messages to be delivered again."""
    consumer = store.subscribe("t", "s")
    consumer.receive_batch(5, timeout=0)
    consumer.close()
    hide(store, DELIVERIES)
    with pytest.raises(CorruptStore):
        store.subscribe("t", "s").receive_batch(5, timeout=0)


def test_a_run_of_a_skipped_transaction(store: Store) -> None:
    """The part of a transaction has its last message and the number of messages."""
    consumer = store.subscribe(
        "t",
        "skipping",
        subscription_type=SubscriptionType.SHARED,
        on_open=OnOpen.SKIP,
        initial_position=LATEST,
    )
    txn, producer = store.begin_transaction(), store.create_producer("t")
    for _ in range(3):
        producer.send(b"txn", txn=txn)
        producer.send(b"plain")
    assert len(consumer.receive_batch(9, timeout=0)) == 3
    store.commit_transaction(txn)
    hide(store, TXN_RUNS)
    with pytest.raises(CorruptStore):
        consumer.receive_batch(9, timeout=0)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_row_of_a_table(store: Store, reverse: bool) -> None:
    """The table's state counts the rows: a scan of the whole table in one state of the store has all of them."""
    store.create_table("a")
    table = store.table("a")
    for number in range(5):
        table.put(b"%d" % number, b"x")
    assert len(list(table.scan(reverse=reverse))) == 5
    hide(store, ROWS)
    with pytest.raises(CorruptStore):
        list(table.scan(reverse=reverse))
    with pytest.raises(CorruptStore), store.transaction() as txn:
        list(table.scan(reverse=reverse, txn=txn))
    assert len(list(table.scan(limit=2))) == 2


def test_a_skipped_transaction(store: Store) -> None:
    """The cursor counts the transactions that dispatch has skipped, whose messages are still to come."""
    options: dict[str, Any] = {"subscription_type": SubscriptionType.KEY_SHARED, "on_open": OnOpen.SKIP}
    first = store.subscribe("t", "keys", initial_position=LATEST, **options)
    txn, producer = store.begin_transaction(), store.create_producer("t")
    producer.send(b"txn", key=b"k", txn=txn)
    producer.send(b"plain", key=b"other")
    assert len(first.receive_batch(9, timeout=0)) == 1
    hide(store, AWAITED)
    producer.send(b"plain", key=b"k")
    with pytest.raises(CorruptStore):
        store.subscribe("t", "keys", **options).receive_batch(9, timeout=0)


@pytest.mark.parametrize("database", [DELAYED, DELAYED_DUE])
def test_a_delayed_message(store: Store, database: Database) -> None:
    """The cursor counts the delayed messages, and the index of due times names the record: each is missed."""
    consumer = store.subscribe("t", "late", subscription_type=SubscriptionType.SHARED)
    store.create_producer("t").send(b"late", deliver_after=5)
    assert list(consumer.receive_batch(9, timeout=0)) == []
    hide(store, database)
    store.connection.clock.sleep(5)
    with pytest.raises(CorruptStore):
        consumer.receive_batch(9, timeout=0)


def test_a_change_without_the_superblock_is_refused_as_damage(store: Store):
    """A stale page may lack the record that every batch reads first."""

    def hide_superblock(batch: WriteBatch) -> None:
        raw, databases = batch._raw, batch._databases
        raw.put(b"moved", bytes(raw.get(SUPERBLOCK_KEY, db=databases["heads"])), db=databases["heads"])
        raw.delete(SUPERBLOCK_KEY, db=databases["heads"])
        raw.commit()
        raise KeyError

    with pytest.raises(KeyError):
        store.connection.write(hide_superblock)
    for attempt in (lambda: store.create_producer("t").send(b"x"), store.reports.store_info):
        with pytest.raises(CorruptStore, match="heads"):
            attempt()
