"""A full topic: `storage/subscription/full_topic.py` refuses producers where hard retention says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, Store, TxnID
from storage.errors import TopicFull
from storage.limits import TRIM_TOPICS_LOOKED_AT
from storage.process.clock import ManualClock
from storage.subscription.behind import subscriptions_behind
from storage.topic import catalogue as topics
from storage.topic.open_topic import OpenTopic
from tests.storage.many_messages import create_subscriptions
from tests.storage.subscription.test_trimming import acknowledge, send, trimmed

MANY = 1200
"""Subscriptions, more than some steps of upkeep let go of."""
TRIES_MAX = 20


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


def behind(store: Store, topic: str) -> int:
    """The number of subscriptions that have not acknowledged everything."""
    with store.connection.view() as view:
        opened = OpenTopic.load(view, topics.get(view, topic).topic_id)
        last = opened.state.max_read
        return len(list(subscriptions_behind(view, opened.topic_id, last)))


def until_taken(store: Store, topic: str, change: Callable[[], object]) -> list[int]:
    """Try a change until the topic takes it; the subscriptions left behind by each refusal."""
    left: list[int] = []
    while True:
        try:
            change()
        except TopicFull:
            left.append(behind(store, topic))
            assert len(left) < TRIES_MAX
        else:
            return left


def test_refused_sends_alone_let_go_of_expired_messages(store: Store, topic: str, clock: ManualClock) -> None:
    """Each refused send leaves a step of bounded size, so the topic takes messages again after a few."""
    create_subscriptions(store, topic, MANY)
    store.admin.topics.set_retention(topic, ttl_ms=60_000)
    send(store, topic, 1)
    clock.advance(61)
    left = until_taken(store, topic, lambda: send(store, topic, 1))
    assert len(left) > 1
    assert left == sorted({*left}, reverse=True)
    assert store.reports.topic_stats(topic).counts.msg_in_counter == 2


def test_a_short_command_lets_go_of_what_is_expired_in_its_own_topic(path: str, clock: ManualClock) -> None:
    """Also where the upkeep on the way of its write would look at the topics of others."""
    names = [f"topic-{number}" for number in range(4 * TRIM_TOPICS_LOOKED_AT)]
    with Store.open(path, clock=clock) as store:
        store.admin.settings.set_retention(time_ms=60_000, ttl_ms=60_000, hard="refuse")
        for name in names:
            store.create_topic(name)
            store.admin.subscriptions.create_subscription(name, "slow", initial_position=EARLIEST)
            send(store, name, 1)
    clock.advance(61)
    for name in names:
        with Store.open(path, clock=clock) as store:
            send(store, name, 1)


def test_a_commit_with_messages_for_two_full_topics_comes_through(store: Store, clock: ManualClock) -> None:
    """The steps on both stay, whichever refuses it."""
    for name in ("first", "second"):
        store.create_topic(name)
        create_subscriptions(store, name, MANY)
        send(store, name, 1)
    store.admin.settings.set_retention(time_ms=60_000, ttl_ms=60_000, hard="refuse")
    clock.advance(61)
    txn = store.transaction()
    for name in ("first", "second"):
        store.create_producer(name, connected=False).send(b"m", txn=txn)
    left = until_taken(store, "second", txn.commit)
    assert left[0] > left[-1]
    assert store.reports.topic_stats("first").counts.msg_in_counter == 2


def test_refused_sends_alone_delete_expired_subscriptions(
    store: Store, topic: str, clock: ManualClock
) -> None:
    """Each refused send leaves what it has deleted, until no subscription holds the topic."""
    create_subscriptions(store, topic, 8)
    store.admin.topics.set_retention(topic, expire_after_ms=60_000)
    send(store, topic, 1)
    clock.advance(61)
    left = until_taken(store, topic, lambda: send(store, topic, 1))
    assert len(left) > 1
    assert left == sorted({*left}, reverse=True)
    assert behind(store, topic) == 0
