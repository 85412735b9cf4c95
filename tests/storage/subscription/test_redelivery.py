"""Negative acknowledgement: which messages go back, when they are due, and who learns of it."""

from __future__ import annotations

from storage import EARLIEST, Position, Store, SubscriptionType
from storage.disk.view import WriteBatch
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.subscription.delivery import NOBODY, PENDING
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.redelivery import negative_acknowledge
from storage.topic import catalogue as topics


def test_a_consumer_gives_back_its_own_an_operator_all_but_pending_ones(store: Store) -> None:
    """Only the operator's raises the generation, by which consumers drop what they have queued."""
    store.create_producer("t").send_batch([b"0", b"1", b"2", b"3"])
    consumers = [
        store.subscribe(
            "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST, receiver_queue_size=2
        )
        for _ in range(2)
    ]  # fmt: skip
    first, second = (list(consumer.receive_batch(2, timeout=0)) for consumer in consumers)
    store.create_producer("t").send(b"not handed out")
    txn = store.begin_transaction()
    consumers[0].acknowledge(first[0], txn=txn)
    at = Position(1, 0)

    def check(batch: WriteBatch) -> None:
        opened = OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "s"))
        ids = [each.consumer_id for each in attached_consumers.every(batch, opened.subscription_id)]
        generation = opened.cursor.generation
        assert negative_acknowledge(opened, [(at, 0)], 1_000_000_007, ids[0]) == [(at, 0b0010)]
        assert opened.cursor.generation == generation
        delivery = opened.deliveries.find(at)
        assert delivery is not None
        assert (delivery.of(PENDING), delivery.of(NOBODY), delivery.of(ids[1])) == (0b0001, 0b0010, 0b1100)
        due = {part.due_ns for part in delivery.parts if part.holder == NOBODY}
        assert due == {batch.now_ns + 1_000_000_007}
        assert negative_acknowledge(opened, [(at, 0b0111), (Position(1, 1), 0)], 7) == [(at, 0b0110)]
        assert opened.cursor.generation == generation + 1

    store.connection.write(check, dry_run=True)
    assert [message.value for message in second] == [b"2", b"3"]
