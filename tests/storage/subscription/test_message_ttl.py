"""Time to live: `storage/subscription/message_ttl.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, OnOpen, Store, SubscriptionType
from storage.errors import InvalidValue
from storage.limits import EXPIRED_NOTED_MS
from storage.process.clock import ManualClock
from storage.subscription.hard_trimming import Loss
from tests.storage.subscription.test_trimming import acknowledge, send

MINUTE_MS = 60_000


@pytest.fixture
def topic(store: Store) -> str:
    """A topic whose messages live for a minute, with a subscription."""
    store.create_topic("brief")
    store.admin.topics.set_retention("brief", ttl_ms=MINUTE_MS)
    store.admin.subscriptions.create_subscription("brief", "slow", initial_position=EARLIEST)
    return "brief"


def counters(store: Store, topic: str, name: str = "slow") -> tuple[int, int]:
    """Expired messages, and the backlog."""
    stats = store.reports.subscription_stats(topic, name).row.stats
    return stats.msg_expired_counter, stats.msg_backlog


def notes(store: Store) -> list[object]:
    return [
        row.effects["expired"]
        for row in store.reports.list_audit_records()
        if row.action == "messages expired"
    ]


def test_old_messages_are_acknowledged_for_every_subscription(
    store: Store, topic: str, clock: ManualClock
) -> None:
    """Those that one has acknowledged itself do not count; nothing is removed without a retention."""
    send(store, topic, 3)
    acknowledge(store, topic, "other", 1)
    clock.advance(30)
    send(store, topic, 2)
    clock.advance(30)
    plan = store.admin.topics.trim_topic(topic, dry_run=True).effects
    assert counters(store, topic) == (0, 5)
    done = store.admin.topics.trim_topic(topic).effects
    assert plan.expired == done.expired == [Loss("other", 2), Loss("slow", 3)]
    assert (counters(store, topic), counters(store, topic, "other")) == ((3, 2), (2, 2))
    assert store.reports.topic_stats(topic).counts.msg_count == 5
    assert done.lost == []


def test_the_store_has_a_default(store: Store, clock: ManualClock) -> None:
    store.admin.settings.set_retention(ttl_ms=MINUTE_MS)
    for name in ("inherits", "keeps"):
        store.create_topic(name)
        store.admin.subscriptions.create_subscription(name, "slow", initial_position=EARLIEST)
        send(store, name, 2)
    store.admin.topics.set_retention("keeps", ttl_ms="unset")
    clock.advance(61)
    forecast = store.maintenance.collect_garbage(dry_run=True).collected
    assert store.maintenance.collect_garbage().collected.messages_expired == forecast.messages_expired == 2
    assert (counters(store, "inherits"), counters(store, "keeps")) == ((2, 0), (0, 2))


def test_nothing_behind_max_read_position_expires(store: Store, topic: str, clock: ManualClock) -> None:
    send(store, topic, 1)
    txn = store.begin_transaction(timeout=3600)
    send(store, topic, 1, txn)
    send(store, topic, 1)
    clock.advance(61)
    store.admin.topics.trim_topic(topic)
    assert counters(store, topic) == (1, 2)
    store.commit_transaction(txn)
    store.admin.topics.trim_topic(topic)
    assert counters(store, topic) == (3, 0)


def test_pending_messages_wait_for_their_transaction(store: Store, topic: str, clock: ManualClock) -> None:
    """The others go; after an abort the pending ones do too, after a commit they were acknowledged."""
    send(store, topic, 4)
    aborted, committed = (store.begin_transaction(timeout=3600) for _ in range(2))
    acknowledge(store, topic, "slow", 1, aborted)
    acknowledge(store, topic, "slow", 1, committed)
    clock.advance(61)
    store.admin.topics.trim_topic(topic)
    stats = store.reports.subscription_stats(topic, "slow").row.stats
    assert (stats.msg_expired_counter, stats.pending, stats.msg_backlog) == (2, 2, 0)
    assert store.maintenance.verify_store() == []
    store.commit_transaction(committed)
    store.admin.transactions.abort_transaction(aborted)
    store.admin.topics.trim_topic(topic)
    assert counters(store, topic) == (3, 0)


def test_a_cumulative_acknowledgement_that_is_pending_waits_too(
    store: Store, topic: str, clock: ManualClock
) -> None:
    send(store, topic, 3)
    txn = store.begin_transaction(timeout=3600)
    with store.subscribe(topic, "slow") as consumer:
        messages = [consumer.receive(timeout=1) for _ in range(2)]
        consumer.acknowledge_cumulative(messages[1], txn=txn)
        clock.advance(61)
        store.admin.topics.trim_topic(topic)
        assert counters(store, topic)[0] == 1
        assert store.maintenance.verify_store() == []
        store.commit_transaction(txn)
    assert counters(store, topic) == (1, 0)


def test_messages_in_flight_are_taken_back(store: Store, topic: str, clock: ManualClock) -> None:
    """A consumer drops them from its queue, and its acknowledgement of one changes nothing."""
    send(store, topic, 3)
    with store.subscribe(topic, "slow") as consumer:
        message = consumer.receive(timeout=1)
        clock.advance(61)
        store.admin.topics.trim_topic(topic)
        send(store, topic, 1)
        consumer.acknowledge(message)
        assert consumer.receive(timeout=1).publish_time > message.publish_time
    assert counters(store, topic) == (3, 1)


def test_messages_held_behind_a_key_expire_as_others(store: Store, clock: ManualClock) -> None:
    """On Key_Shared with on-open skip, once the transaction before them has ended."""
    store.create_topic("k")
    store.admin.topics.set_retention("k", ttl_ms=MINUTE_MS)
    txn = store.begin_transaction(timeout=3600)
    with store.create_producer("k", connected=False) as producer:
        producer.send(b"first", key=b"k", txn=txn)
        producer.send(b"second", key=b"k")
    with store.subscribe(
        "k",
        "s",
        subscription_type=SubscriptionType.KEY_SHARED,
        on_open=OnOpen.SKIP,
        initial_position=EARLIEST,
    ) as consumer:
        assert consumer.receive_batch(10, timeout=0) == []
        clock.advance(61)
        store.admin.topics.trim_topic("k")
        assert counters(store, "k", "s") == (0, 2)
        store.commit_transaction(txn)
        store.admin.topics.trim_topic("k")
        assert consumer.receive_batch(10, timeout=0) == []
    assert counters(store, "k", "s") == (2, 0)


def test_nothing_expires_after_the_wall_clock_was_moved(store: Store, topic: str, clock: ManualClock) -> None:
    send(store, topic, 2)
    clock.wall_now_ns += 3600 * 1_000_000_000
    done = store.admin.topics.trim_topic(topic).effects
    assert (done.expired, done.clocks_disagree) == ([], True)
    assert store.maintenance.collect_garbage(trust_clock=True).collected.messages_expired == 2


def test_a_run_is_noted_once_and_writes_once_an_hour(store: Store, topic: str, clock: ManualClock) -> None:
    for _ in range(3):
        send(store, topic, 2)
        clock.advance(61)
        store.begin_transaction()
    assert counters(store, topic) == (6, 0)
    assert notes(store) == [[{"subscription": "slow", "messages": 2}]]
    clock.advance(EXPIRED_NOTED_MS / 1000)
    store.begin_transaction()
    assert notes(store)[0] == [{"subscription": "slow", "messages": 4}]
    send(store, topic, 1)
    clock.advance(61)
    store.maintenance.collect_garbage()
    assert notes(store)[0] == [{"subscription": "slow", "messages": 1}]


def test_a_time_to_live_has_bounds(store: Store, topic: str) -> None:
    with pytest.raises(InvalidValue, match="time to live is 1s to 36600d"):
        store.admin.topics.set_retention(topic, ttl_ms=0)


def test_messages_that_expire_again_after_a_seek(store: Store, topic: str, clock: ManualClock) -> None:
    """A seek makes expired messages new, and the limit acknowledges them again: the counter exceeds the topic's."""
    send(store, topic, 1)
    clock.advance(61)
    for expired in (1, 2):
        store.admin.topics.trim_topic(topic)
        assert counters(store, topic, "slow") == (expired, 0)
        assert store.maintenance.verify_store(full=True) == []
        store.admin.subscriptions.seek_subscription(topic, "slow", EARLIEST)
