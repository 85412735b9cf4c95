"""A full topic: `storage/subscription/full_topic.py` refuses producers where hard retention says so."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, TxnID
from storage.errors import TopicFull
from storage.process.clock import ManualClock
from tests.storage.subscription.test_trimming import acknowledge, send, trimmed


@pytest.fixture
def topic(store: Store) -> str:
    """A topic with a slow subscription that refuses producers beyond 5,000 bytes or a minute."""
    store.create_topic("narrow", ledger_entries_max=3)
    store.admin.topics.set_retention("narrow", time_ms=60_000, size=5_000, hard="refuse")
    store.admin.subscriptions.create_subscription("narrow", "slow", initial_position=EARLIEST)
    return "narrow"


def send_large(store: Store, topic: str, count: int, txn: TxnID | None = None) -> None:
    with store.create_producer(topic, connected=False) as producer:
        for _ in range(count):
            producer.send(bytes(1000), txn=txn)


def test_a_topic_takes_nothing_beyond_its_size_until_the_subscription_has_caught_up(
    store: Store, topic: str
) -> None:
    with pytest.raises(TopicFull, match=r"topic narrow is full: subscription slow keeps .* bytes") as refused:
        send_large(store, topic, 10)
    assert store.reports.topic_stats(topic).counts.msg_count == 5
    assert refused.value.details["holder"] == "subscription slow"
    acknowledge(store, topic, "slow", 3)
    send_large(store, topic, 2)


def test_a_topic_takes_nothing_while_its_oldest_message_waits_too_long(
    store: Store, topic: str, clock: ManualClock
) -> None:
    send(store, topic, 1)
    clock.advance(61)
    with pytest.raises(TopicFull, match="slow keeps messages since"):
        send(store, topic, 1)
    acknowledge(store, topic, "slow", 1)
    send(store, topic, 1)


def test_nothing_is_lost_instead(store: Store, topic: str, clock: ManualClock) -> None:
    send(store, topic, 4)
    clock.advance(61)
    assert trimmed(store, topic) == (1, 0)


def test_an_open_transaction_is_named_and_may_still_end(store: Store, topic: str) -> None:
    """Its own messages count; markers are written to a full topic all the same."""
    store.admin.subscriptions.delete_subscription(topic, "slow")
    txn = store.begin_transaction()
    with pytest.raises(TopicFull, match=f"transaction {txn} keeps"):
        send_large(store, topic, 10, txn)
    store.commit_transaction(txn)
    send_large(store, topic, 1)


def test_a_transaction_with_buffered_messages_stays_open_when_its_commit_is_refused(
    store: Store, topic: str
) -> None:
    """So that it may be committed once there is room."""
    with store.create_producer(topic, connected=False) as producer:
        txn = store.transaction()
        producer.send(b"in time", txn=txn)
        send_large(store, topic, 5)
        with pytest.raises(TopicFull):
            txn.commit()
        acknowledge(store, topic, "slow", 5)
        txn.commit()


def test_a_dead_owner_of_the_holding_transaction_does_not_keep_a_topic_full(
    store: Store, topic: str, clock: ManualClock
) -> None:
    """The write that meets an overdue transaction ends it first, as everywhere."""
    store.admin.subscriptions.delete_subscription(topic, "slow")
    txn = store.begin_transaction(timeout=30)
    send_large(store, topic, 1)
    with store.create_producer(topic, connected=False) as producer:
        producer.send(bytes(4000), txn=txn)
        clock.advance(61)
        producer.send(bytes(1000))
