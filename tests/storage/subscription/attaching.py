"""Consumers of one subscription `a` on topic `t`, and messages for them."""

from __future__ import annotations

from storage import EARLIEST, Consumer, IsolationLevel, Store, SubscriptionType


def attach(
    store: Store,
    type_: SubscriptionType | None = None,
    level: IsolationLevel | None = None,
    name: str | None = None,
    start: object = EARLIEST,
) -> Consumer:
    return store.subscribe(
        "t",
        "a",
        subscription_type=type_,
        subscription_isolation_level=level,
        consumer_name=name,
        initial_position=start,  # type: ignore[arg-type]
    )


def values(consumer: Consumer) -> list[bytes | None]:
    return [message.value for message in consumer.receive_batch(99, timeout=0)]


def send(store: Store, *sent: str) -> None:
    producer = store.create_producer("t")
    for value in sent:
        producer.send(value.encode())
