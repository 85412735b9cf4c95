"""A due message holds its key against messages in queues of other consumers."""

from __future__ import annotations

from storage import Store
from storage.process.clock import ManualClock
from tests.storage.walk_steps import KEY_SHARED, Attach, values


def test_a_due_message_comes_before_queued_messages_of_its_key(
    store: Store, clock: ManualClock, attach: Attach
) -> None:
    """One consumer's look at a message whose time has come sends back what another has queued behind it."""
    producer = store.create_producer("t")
    producer.send(b"first", key="k")
    producer.send(b"late", key="k", deliver_after=5.0)
    producer.send(b"last", key="k")
    first, second = attach(KEY_SHARED), attach(KEY_SHARED)
    assert values(first, 1) == [b"first"]
    clock.advance(6)
    assert values(second) == []
    assert values(first, 1) == [b"late"]
    assert values(first, 1) == [b"last"]
    assert store.maintenance.verify_store(full=True) == []
