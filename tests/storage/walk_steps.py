"""Steps that the tests of walk share."""

from __future__ import annotations

from collections.abc import Callable

from storage import Consumer, IsolationLevel, Message, MessageId, Store, SubscriptionType

RC, RU = IsolationLevel


EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType


TYPES = list(SubscriptionType)


Attach = Callable[..., Consumer]


def receive(consumer: Consumer, count: int = 99) -> list[Message]:
    return list(consumer.receive_batch(count, timeout=0))


def values(consumer: Consumer, count: int = 99) -> list[bytes | None]:
    return [message.value for message in receive(consumer, count)]


def drain(consumer: Consumer) -> list[bytes | None]:
    """Receive until the consumer comes up empty: of consumers that share, each takes its part of the rest anew."""
    found: list[bytes | None] = []
    while received := values(consumer):
        found += received
    return found


def send(store: Store, *sent: str, key: str | None = None) -> list[MessageId]:
    producer = store.create_producer("t")
    return [producer.send(value.encode(), key=key) for value in sent]
