"""Delayed delivery across processes: waiting consumers are woken in time, and killed ones lose nothing."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from storage import EARLIEST, Store, SubscriptionType
from tests.processes.child import Children

CONSUMER = """
    with Store.open(path) as store:
        with store.subscribe("t", "s") as consumer:
            say("waiting")
            while True:
                message = consumer.receive(timeout=60)
                now_ms = time.time_ns() // 1_000_000
                consumer.acknowledge(message)
                say("received", message.value.decode(), now_ms - (message.deliver_at or now_ms))
                if message.value == b"last":
                    break
"""

GREEDY = """
    with Store.open(path) as store:
        consumer = store.subscribe("t", "s", receiver_queue_size=3)
        say("waiting")
        while True:
            message = consumer.receive(timeout=60)
            say("received", message.value.decode(), int(time.time_ns() // 1_000_000 >= message.deliver_at))
            if hear() == "acknowledge":
                consumer.acknowledge(message)
                say("acknowledged")
"""

HEEDING = [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED]


def create(store: Store, type_: SubscriptionType) -> None:
    store.admin.subscriptions.create_subscription(
        "t", "s", subscription_type=type_, initial_position=EARLIEST
    )


@pytest.mark.parametrize("type_", HEEDING)
def test_a_waiting_consumer_of_another_process_is_woken_at_the_due_time(
    store: Store, children: Children, type_: SubscriptionType
):
    """No commit wakes it: it knows the time itself, and never is early."""
    create(store, type_)
    consumer = children.run(CONSUMER)
    consumer.expect("waiting")
    producer = store.create_producer("t")
    producer.send(b"late", deliver_after=0.7)
    producer.send(b"plain")
    assert consumer.expect("received").split()[0] == "plain"
    value, lateness_ms = consumer.expect("received").split()
    assert (value, int(lateness_ms) >= 0) == ("late", True)
    producer.send(b"last")
    consumer.succeed()
    assert store.reports.list_subscriptions("t")[0].stats.msg_backlog == 0


@pytest.mark.slow
@pytest.mark.kills
@pytest.mark.parametrize("type_", HEEDING)
def test_killed_consumers_lose_no_delayed_message(store: Store, children: Children, type_: SubscriptionType):
    """Messages due at many times, consumers killed at every third message: each comes, none before its time."""
    create(store, type_)
    producer, wanted = store.create_producer("t"), [str(number) for number in range(12)]
    producer.send_batch(
        [value.encode() for value in wanted],
        keys=[f"k{number % 3}" for number in range(12)],
        deliver_after=[0.1 * (number % 7) for number in range(12)],
    )
    acknowledged, until = Counter[str](), time.monotonic() + 60
    while sum(acknowledged.values()) < len(wanted):
        assert time.monotonic() < until
        child = children.run(GREEDY)
        child.expect("waiting")
        for number in range(3):
            value, is_due = child.expect("received").split()
            assert is_due == "1"
            if number == 2:
                break
            child.say("acknowledge")
            child.expect("acknowledged")
            acknowledged[value] += 1
            if sum(acknowledged.values()) == len(wanted):
                break
        child.kill()
    assert acknowledged == Counter(wanted)
    store.admin.transactions.reap_transactions()
    assert store.maintenance.verify_store(full=True) == []
    assert store.reports.list_subscriptions("t")[0].stats.msg_backlog == 0
