"""A consumer that is interrupted between a commit of its own and the change of its queue."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, Consumer, Store, SubscriptionType, faults


def subscribe(store: Store, kind: SubscriptionType) -> Consumer:
    """A consumer of `t`, and on shared types one beside that asks for nothing."""
    beside = kind in (SubscriptionType.SHARED, SubscriptionType.KEY_SHARED)
    consumers = [
        store.subscribe("t", "a", subscription_type=kind, initial_position=EARLIEST)
        for _ in range(1 + beside)
    ]
    return consumers[0]


def cut_behind_the_commit(call: Callable[[], object]) -> None:
    """Run a call with an interrupt (Ctrl-C) behind its first commit."""

    def interrupt() -> None:
        faults.disarm()
        raise KeyboardInterrupt

    faults.arm("environment.after_commit", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            call()
    finally:
        faults.disarm()


@pytest.mark.parametrize("kind", SubscriptionType)
def test_what_was_delivered_comes_with_the_next_call(store: Store, kind: SubscriptionType) -> None:
    """Each message once, in order, and not as a redelivery: the store had given them to this consumer."""
    producer = store.create_producer("t")
    for number in range(4):
        producer.send(b"%d" % number, key="k")
    consumer, got = subscribe(store, kind), []
    cut_behind_the_commit(lambda: consumer.receive_batch(9, timeout=0))
    while messages := consumer.receive_batch(9, timeout=0):
        for message in messages:
            got.append((message.value, message.redelivery_count))
            consumer.acknowledge(message)
    assert got == [(b"%d" % number, 0) for number in range(4)]


@pytest.mark.parametrize("kind", SubscriptionType)
def test_what_was_acknowledged_before_it_was_received_does_not_come(
    store: Store, kind: SubscriptionType
) -> None:
    """Its id was acknowledged while it waited in the queue, and the interrupt came behind that commit."""
    producer = store.create_producer("t")
    ids = [producer.send(b"%d" % number, key="k") for number in range(4)]
    consumer = subscribe(store, kind)
    received = [consumer.receive(timeout=0).value]
    cut_behind_the_commit(lambda: consumer.acknowledge(ids[:2]))
    while messages := consumer.receive_batch(9, timeout=0):
        received += [message.value for message in messages]
        consumer.acknowledge(messages)
    assert received == [b"0", b"2", b"3"]
