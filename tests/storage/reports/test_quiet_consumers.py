"""Quiet consumers: living ones that hold messages and acknowledge none, of every type, and no others."""

from __future__ import annotations

from cProfile import Profile

import pytest

from storage import EARLIEST, Consumer, OnOpen, Store, SubscriptionType
from storage.process.clock import ManualClock
from storage.reports.overview import store_overview
from storage.reports.quiet_consumers import quiet_consumers

TYPES = list(SubscriptionType)


def subscribed(store: Store, kind: SubscriptionType, messages: int = 6) -> Consumer:
    """A consumer of a subscription with messages of two keys."""
    consumer = store.subscribe("t", "s", subscription_type=kind, initial_position=EARLIEST)
    send(store, messages)
    return consumer


def send(store: Store, messages: int) -> None:
    """Send messages of two keys."""
    with store.create_producer("t") as producer:
        producer.send_batch([b"m"] * messages, keys=[b"ab"[index % 2 :][:1] for index in range(messages)])


def told(store: Store) -> list[tuple[str, int, int]]:
    """Name, messages and seconds of each consumer that holds messages."""
    rows = store_overview(store.engine).facts.quiet_consumers
    return [(row.consumer_name, row.messages, row.quiet_ms // 1000) for row in rows]


def findings(store: Store) -> list[str]:
    """The codes of the findings."""
    return [finding.code for finding in store_overview(store.engine).findings]


@pytest.mark.parametrize("kind", TYPES)
def test_a_consumer_that_acknowledges_nothing_is_found(
    store: Store, clock: ManualClock, kind: SubscriptionType
) -> None:
    """After a minute, however often it receives; evicted, it is found no more."""
    consumer = subscribed(store, kind)
    assert consumer.receive_batch(2, timeout=0)
    clock.advance(60)
    assert told(store) == [(consumer.consumer_name, 6, 60)]
    assert "consumer-quiet" not in findings(store)
    send(store, 3)
    assert len(consumer.receive_batch(9, timeout=0)) == 4
    assert len(consumer.receive_batch(9, timeout=0)) == 3
    clock.advance(1)
    assert told(store) == [(consumer.consumer_name, 9, 61)]
    (finding,) = [row for row in store_overview(store.engine).findings if row.code == "consumer-quiet"]
    owner = consumer._connection.identity
    assert finding.what.startswith(
        f"subscription s of topic t: consumer {consumer.consumer_name} (pid {owner.pid} on {owner.host}, since "
    )
    assert finding.what.endswith("holds 9 messages and has acknowledged none for 1m01s")
    assert finding.severity == "warning"
    store.admin.subscriptions.evict_consumers("t", "s", consumer.consumer_name)
    assert told(store) == []


@pytest.mark.parametrize("kind", TYPES)
def test_a_consumer_that_is_slow_is_not_found(
    store: Store, clock: ManualClock, kind: SubscriptionType
) -> None:
    """One acknowledgement in 50 seconds; also a cumulative one, and messages given back; afterwards, idle."""
    consumer = subscribed(store, kind)
    for message in consumer.receive_batch(3, timeout=0):
        clock.advance(50)
        assert "consumer-quiet" not in findings(store)
        consumer.acknowledge(message)
    clock.advance(50)
    first, middle, last = consumer.receive_batch(3, timeout=0)
    consumer.negative_acknowledge(first, delay=0)
    clock.advance(50)
    assert told(store)[0][2] == 50
    if kind.is_ordered:
        consumer.acknowledge_cumulative(last)
    else:
        consumer.acknowledge([first, middle, last])
    clock.advance(50)
    assert "consumer-quiet" not in findings(store)
    while messages := consumer.receive_batch(9, timeout=0):
        consumer.acknowledge(messages)
    clock.advance(3600)
    assert told(store) == []
    send(store, 1)
    assert consumer.receive(timeout=0)
    assert told(store) == [(consumer.consumer_name, 1, 0)]


@pytest.mark.parametrize("kind", TYPES)
def test_the_time_starts_anew_when_an_operator_took_everything(
    store: Store, clock: ManualClock, kind: SubscriptionType
) -> None:
    """The first message after that is not an hour late; with some messages left at the consumer the time goes on."""
    consumer, subscriptions = subscribed(store, kind), store.admin.subscriptions
    assert consumer.receive_batch(2, timeout=0)
    clock.advance(100)
    subscriptions.skip_messages("t", "s", 3)
    send(store, 1)
    assert len(consumer.receive_batch(9, timeout=0)) + len(consumer.receive_batch(9, timeout=0)) == 4
    assert told(store) == [(consumer.consumer_name, 4, 100)]
    subscriptions.clear_backlog("t", "s")
    clock.advance(3600)
    send(store, 1)
    assert consumer.receive(timeout=0)
    assert told(store) == [(consumer.consumer_name, 1, 0)]


@pytest.mark.parametrize("is_cumulative", [False, True])
def test_a_consumer_that_waits_for_its_transaction_is_not_found(
    store: Store, clock: ManualClock, is_cumulative: bool
) -> None:
    """The open transaction is; after its abort the messages are free again, or held by a quiet consumer."""
    consumer = subscribed(store, SubscriptionType.EXCLUSIVE)
    messages = list(consumer.receive_batch(2, timeout=0))
    txn = store.transaction(timeout=3600)
    if is_cumulative:
        consumer.acknowledge_cumulative(messages[-1], txn=txn)
    else:
        consumer.acknowledge(messages, txn=txn)
    clock.advance(61)
    assert told(store) == []
    assert findings(store) == ["acknowledgements-held"]
    txn.commit()
    assert told(store) == [(consumer.consumer_name, 4, 61)]


def test_delayed_and_blocked_messages_are_held_by_nobody(store: Store, clock: ManualClock) -> None:
    """A consumer that waits for a delivery time, or behind an open transaction, holds nothing."""
    consumer = store.subscribe(
        "t",
        "s",
        subscription_type=SubscriptionType.KEY_SHARED,
        on_open=OnOpen.SKIP,
        initial_position=EARLIEST,
    )
    producer = store.create_producer("t")
    producer.send(b"later", deliver_after=900)
    producer.send(b"held", key=b"k", txn=store.begin_transaction(timeout=3600))
    producer.send(b"behind", key=b"k")
    assert not consumer.receive_batch(9, timeout=0)
    clock.advance(300)
    assert told(store) == []


def test_the_messages_of_a_consumer_are_counted_in_one_pass(store: Store) -> None:
    """The deliveries of a subscription are read once, and not again for each consumer."""
    consumers = [
        store.subscribe(
            "t",
            "s",
            subscription_type=SubscriptionType.SHARED,
            initial_position=EARLIEST,
            receiver_queue_size=2,
        )
        for _ in range(30)
    ]
    for _ in range(60):
        send(store, 1)
    for consumer in [*consumers, *consumers]:
        consumer.receive_batch(1, timeout=0)
    profile = Profile()
    with store.connection.view() as view:
        profile.enable()
        rows = quiet_consumers(view, store.connection.environment)
        profile.disable()
    assert [row.messages for row in rows] == [2] * 30
    calls = {
        entry.code.co_name: entry.callcount for entry in profile.getstats() if hasattr(entry.code, "co_name")
    }
    assert calls["messages_held"] == 1
