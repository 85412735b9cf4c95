"""Open subscriptions: one cursor for everything that opens the subscription in a batch."""

from __future__ import annotations

from storage import EARLIEST, Position, Store
from storage.disk.view import WriteBatch
from storage.subscription import catalogue as subscriptions, cursor as cursors
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics


def test_the_cursor_is_shared_and_written_with_the_batch(store: Store) -> None:
    """An acknowledgement through one open subscription is seen through the next."""
    producer = store.create_producer("t")
    for value in (b"0", b"1", b"2"):
        producer.send(value)
    store.subscribe("t", "s", initial_position=EARLIEST).close()

    def change(batch: WriteBatch) -> int:
        subscription = subscriptions.get(batch, topics.get(batch, "t"), "s")
        first, second = OpenSubscription(batch, subscription), OpenSubscription(batch, subscription)
        first.acks.acknowledge(Position(1, 0), 1, 1)
        assert second.cursor is first.cursor
        assert second.cursor.mark_delete == Position(1, 0)
        second.acks.acknowledge(Position(1, 2), 1, 1)
        assert first.acks.of(Position(1, 2), 1) == 1
        first.acks.acknowledge(Position(1, 1), 1, 1)
        first.acks.advance()
        return subscription.subscription_id

    subscription_id = store.connection.write(change)
    with store.connection.view() as view:
        assert cursors.load(view, subscription_id).mark_delete == Position(1, 2)


def test_a_deleted_subscription_leaves_no_cursor(store: Store) -> None:
    """Though the cursor was changed in the same batch before."""
    store.subscribe("t", "s", initial_position=EARLIEST).close()

    def change(batch: WriteBatch) -> int:
        subscription = subscriptions.get(batch, topics.get(batch, "t"), "s")
        OpenSubscription(batch, subscription).cursor.generation += 1
        subscriptions.delete(batch, subscription)
        return subscription.subscription_id

    subscription_id = store.connection.write(change)
    with store.connection.view() as view:
        assert not view.has(cursors.CURSORS, subscription_id.to_bytes(8, "big"))
