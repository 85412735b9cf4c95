"""Delayed messages that a consumer names: `storage/client/delayed_messages.py`."""

from __future__ import annotations

from storage import EARLIEST, Store, SubscriptionType
from storage.process.clock import ManualClock


def test_a_consumer_names_delayed_messages(store: Store, clock: ManualClock) -> None:
    """Their number and the earliest time, those that are due left out."""
    store.create_topic("orders")
    producer = store.create_producer("orders")
    producer.send_batch([b"1", b"2", b"3"], deliver_after=[20, None, 10])
    start_ms = clock.wall_ms()
    consumer = store.subscribe(
        "orders", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
    )
    assert consumer.receive(0).value == b"2"
    assert consumer.delayed() == (2, start_ms + 10_000)
    clock.advance(10)
    assert consumer.delayed() == (1, start_ms + 20_000)
    clock.advance(10)
    assert consumer.delayed() is None
