"""Acknowledging for the sake of a limit: `storage/subscription/forced_acks.py`, over spans and delayed messages."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Message, OnOpen, Store, SubscriptionType, TransactionState
from storage.disk.schema import ACKS, DELAYED, DELAYED_DUE, DELIVERIES, PENDING, TXN_PENDING
from storage.errors import TransactionConflict
from storage.process.clock import ManualClock
from tests.storage.subscription.test_trimming import send

MINUTE_MS = 60_000
RECORDS = (ACKS, DELIVERIES, PENDING, TXN_PENDING, DELAYED, DELAYED_DUE)


@pytest.fixture
def topic(store: Store) -> str:
    """A topic with ledgers of ten entries and a hard limit of a minute."""
    store.create_topic("short", ledger_entries_max=10)
    store.admin.topics.set_retention("short", time_ms=MINUTE_MS, hard="trim")
    return "short"


def records(store: Store) -> dict[str, int]:
    with store.connection.view() as view:
        return {database.name: view.count(database) for database in RECORDS if view.count(database)}


def value(message: Message) -> int:
    assert message.value is not None
    return int(message.value)


def test_entries_acknowledged_out_of_order_do_not_count(store: Store, topic: str, clock: ManualClock) -> None:
    """Sets within a span: some acknowledged, some in flight, some given back, some never delivered."""
    with store.subscribe(
        topic,
        "s",
        initial_position=EARLIEST,
        subscription_type=SubscriptionType.SHARED,
        receiver_queue_size=8,
    ) as consumer:
        send(store, topic, 10)
        received = consumer.receive_batch(8)
        for message in (received[6], received[1], received[4]):
            consumer.acknowledge(message)
        consumer.negative_acknowledge(received[2], delay=3600)
        assert set(records(store)) == {"acks", "deliveries"}
        clock.advance(61)
        store.admin.topics.trim_topic(topic)
        stats = store.reports.subscription_stats(topic, "s").row.stats
        assert (stats.msg_lost_counter, stats.msg_backlog, stats.unacked_messages) == (7, 0, 0)
        assert records(store) == {}
        assert store.maintenance.verify_store(full=True) == []
        consumer.acknowledge(received[0])
        assert records(store) == {}


@pytest.mark.parametrize("cumulative", [False, True])
def test_pending_entries_of_a_span_are_aborted_for_a_ledger(
    store: Store, topic: str, clock: ManualClock, cumulative: bool
) -> None:
    txn = store.begin_transaction(timeout=3600)
    kind = SubscriptionType.EXCLUSIVE if cumulative else SubscriptionType.SHARED
    with store.subscribe(topic, "s", initial_position=EARLIEST, subscription_type=kind) as consumer:
        send(store, topic, 10)
        received = consumer.receive_batch(10)
        if cumulative:
            consumer.acknowledge_cumulative(received[4], txn=txn)
        else:
            consumer.acknowledge([received[7], received[3]], txn=txn)
        consumer.acknowledge(received[9])
        clock.advance(61)
        store.admin.topics.trim_topic(topic)
        assert store.reports.show_transaction(txn).row.state is TransactionState.ABORTED
        assert store.reports.subscription_stats(topic, "s").row.stats.msg_lost_counter == 9
        assert records(store) == {}
        assert store.maintenance.verify_store(full=True) == []
        with pytest.raises(TransactionConflict):
            consumer.acknowledge(received[3], txn=store.begin_transaction())


def test_the_time_to_live_passes_over_pending_entries_of_a_span(store: Store, clock: ManualClock) -> None:
    """They go with the end of their transaction: acknowledged by a commit, expired after an abort."""
    store.create_topic("brief")
    store.admin.topics.set_retention("brief", ttl_ms=MINUTE_MS)
    first, second = (store.begin_transaction(timeout=3600) for _ in range(2))
    with store.subscribe(
        "brief", "s", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED
    ) as consumer:
        send(store, "brief", 10)
        received = consumer.receive_batch(6)
        consumer.acknowledge([received[2], received[0]], txn=first)
        consumer.acknowledge(received[3], txn=second)
        clock.advance(61)
        store.admin.topics.trim_topic("brief")
        assert store.reports.subscription_stats("brief", "s").row.stats.msg_expired_counter == 7
        assert store.maintenance.verify_store(full=True) == []
        store.commit_transaction(first)
        store.admin.transactions.abort_transaction(second)
        store.admin.topics.trim_topic("brief")
        stats = store.reports.subscription_stats("brief", "s").row.stats
        assert (stats.msg_expired_counter, stats.msg_backlog) == (8, 0)
        assert records(store) == {}
        assert store.maintenance.verify_store(full=True) == []


@pytest.mark.parametrize("on_open", [OnOpen.BLOCK, OnOpen.SKIP])
@pytest.mark.parametrize("limit", ["hard", "ttl"])
def test_delayed_messages_go_and_count_like_others(
    store: Store, clock: ManualClock, limit: str, on_open: OnOpen
) -> None:
    store.create_topic("late", ledger_entries_max=3)
    with store.subscribe(
        "late", "s", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED, on_open=on_open
    ) as consumer:
        with store.create_producer("late", connected=False) as producer:
            for number in range(3):
                producer.send(b"%d" % number, deliver_after=90)
            clock.advance(40)
            if on_open is OnOpen.SKIP:
                txn = store.begin_transaction(timeout=3600)
                producer.send(b"3", deliver_after=90, txn=txn)
            else:
                producer.send(b"3", deliver_after=90)
            producer.send(b"4", deliver_after=90)
            producer.send(b"5")
        assert [value(message) for message in consumer.receive_batch(10, timeout=0)] == [5]
        assert store.reports.subscription_stats("late", "s").row.stats.delayed == 4 + (
            on_open is OnOpen.BLOCK
        )
        if limit == "hard":
            store.admin.topics.set_retention("late", time_ms=MINUTE_MS, hard="trim")
        else:
            store.admin.topics.set_retention("late", ttl_ms=MINUTE_MS)
        clock.advance(25)
        done = store.admin.topics.trim_topic("late").effects
        assert sum(loss.messages for loss in (*done.lost, *done.expired)) == 3
        assert store.maintenance.verify_store(full=True) == []
        if on_open is OnOpen.SKIP:
            store.commit_transaction(txn)
        store.admin.topics.set_retention("late", ttl_ms="unset", hard="off")
        clock.advance(70)
        assert [value(message) for message in consumer.receive_batch(10, timeout=0)] == [3, 4]
        assert store.reports.subscription_stats("late", "s").row.stats.delayed == 0
        assert store.maintenance.verify_store(full=True) == []
