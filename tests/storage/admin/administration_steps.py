"""Steps that the tests of administration share."""

from __future__ import annotations

from typing import Any

from storage import EARLIEST, Consumer, IsolationLevel, Store

RC, RU = IsolationLevel


def send(store: Store, count: int, **more: Any) -> None:
    producer = store.create_producer("t")
    for number in range(count):
        producer.send(b"%d" % number, **more)


def attach(store: Store, **more: Any) -> Consumer:
    return store.subscribe("t", "a", initial_position=EARLIEST, **more)


def values(consumer: Consumer) -> list[bytes | None]:
    return [message.value for message in consumer.receive_batch(99, timeout=0)]
