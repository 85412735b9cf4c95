"""Delivery: `storage/subscription/delivery.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, MessageId, Store, SubscriptionType
from storage.process.clock import ManualClock
from tests.storage.walk_steps import (
    FAILOVER,
    RU,
    SHARED,
    TYPES,
    Attach,
    receive,
    send,
    values,
)


class TestFlight:
    """A message handed to a consumer is in flight until acknowledged."""

    def test_it_goes_to_one_consumer_only(self, store: Store, attach: Attach) -> None:
        """Two consumers of a Shared subscription divide the messages between them."""
        send(store, *"012345")
        one, two = attach(SHARED, window=2), attach(SHARED, window=2)
        received = [values(consumer, 2) for consumer in (one, two, one)]
        assert received == [[b"0", b"1"], [b"2", b"3"], [b"4"]]
        assert values(two) == [b"5"]
        assert values(one) == values(two) == []

    @pytest.mark.parametrize("type_", TYPES)
    def test_closing_gives_it_back_in_order(
        self, store: Store, attach: Attach, type_: SubscriptionType
    ) -> None:
        """The next consumer is handed the same messages again, and is told how often they were before."""
        send(store, *"0123")
        with attach(type_) as consumer:
            received = receive(consumer, 2)
            consumer.acknowledge(received[0])
        again = receive(attach(type_))
        assert [(m.value, m.redelivery_count) for m in again] == [(b"1", 1), (b"2", 0), (b"3", 0)]

    def test_what_the_application_never_saw_counts_as_not_handed_out(
        self, store: Store, attach: Attach
    ) -> None:
        """Prefetching costs a message none of its deliveries, however often consumers come and go."""
        send(store, *"01")
        for _ in range(3):
            with attach() as consumer:
                assert values(consumer, 1) == [b"0"]
        assert [m.redelivery_count for m in receive(attach())] == [3, 0]

    @pytest.mark.parametrize("type_", TYPES)
    def test_a_dead_consumers_messages_are_free_at_once(
        self, store: Store, attach: Attach, path: str, clock: ManualClock, type_: SubscriptionType
    ) -> None:
        """They go to the next, in order; what the dead one's application never received counts as not delivered."""
        send(store, *"012")
        with Store.open(path, clock=clock) as other:
            dead = other.subscribe("t", "a", subscription_type=type_, initial_position=EARLIEST)
            assert len(dead.receive_batch(2, timeout=0)) == 2
        again = receive(attach())
        assert [(m.value, m.redelivery_count) for m in again] == [(b"0", 1), (b"1", 1), (b"2", 0)]

    def test_on_failover_the_first_attached_is_handed_everything(self, store: Store, attach: Attach) -> None:
        """The second one waits, and takes over with what was not acknowledged."""
        send(store, *"01")
        first, second = attach(FAILOVER), attach(FAILOVER)
        assert values(second) == []
        (zero, _) = receive(first)
        first.acknowledge(zero)
        assert values(second) == []
        first.close()
        assert values(second) == [b"1"]

    def test_a_level_without_the_filter_tells_the_state_at_delivery(
        self, store: Store, attach: Attach
    ) -> None:
        """At READ_UNCOMMITTED each message says what its transaction was when it was handed out."""
        txn = store.begin_transaction()
        store.create_producer("t").send(b"x", txn=txn)
        with attach(subscription_isolation_level=RU) as consumer:
            (message,) = receive(consumer)
            assert (message.txn_id, message.txn_state.value) == (txn, "OPEN")  # type: ignore[union-attr]
        store.admin.transactions.abort_transaction(txn)
        (message,) = receive(attach())
        assert (message.txn_id, message.txn_state.value) == (txn, "ABORTED")  # type: ignore[union-attr]


class TestWithdrawn:
    """Messages taken from the queue of a consumer before its application received them."""

    def test_an_abort_counts_what_was_received(self, store: Store, attach: Attach) -> None:
        """However many transactions are aborted, the messages behind the received one keep their count."""
        send(store, *"0123")
        consumer = attach()
        for times in range(3):
            txn = store.begin_transaction()
            (message,) = receive(consumer, 1)
            assert (message.value, message.redelivery_count) == (b"0", times)
            consumer.acknowledge(message, txn=txn)
            store.admin.transactions.abort_transaction(txn)
        assert [message.redelivery_count for message in receive(consumer)] == [3, 0, 0, 0]

    def test_an_operator_who_gives_messages_back(self, store: Store, attach: Attach) -> None:
        """A message that waited in a queue counts as not delivered."""
        send(store, *"01")
        consumer = attach(SHARED)
        message_ids = [receive(consumer, 1)[0].message_id, MessageId(1, 1)]
        store.admin.acknowledgements.negative_acknowledge_messages("t", "a", message_ids, delay=0)
        assert [message.redelivery_count for message in receive(consumer)] == [1, 0]
