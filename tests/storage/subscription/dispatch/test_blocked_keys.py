"""Blocked keys: `storage/subscription/dispatch/blocked_keys.py`."""

from __future__ import annotations

import pytest

from storage import MessageId, OnOpen, Store
from storage.process.clock import ManualClock
from tests.storage.walk_steps import (
    KEY_SHARED,
    RU,
    Attach,
    drain,
    receive,
    send,
    values,
)


class TestKeyShared:
    """A key's messages are handed out one consumer at a time, in order (invariant 21)."""

    def test_a_key_in_flight_elsewhere_waits(self, store: Store, attach: Attach) -> None:
        """Other keys, and messages without one, go on; the key follows when it is acknowledged."""
        producer = store.create_producer("t")
        for value, key in ((b"k0", "k"), (b"k1", "k"), (b"l0", "l"), (b"n0", None), (b"k2", "k")):
            producer.send(value, key=key)
        one, two = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
        (first,) = receive(one, 1)
        assert first.value == b"k0"
        assert drain(two) == [b"l0", b"n0"]
        one.acknowledge(first)
        assert drain(two) == [b"k1", b"k2"]

    def test_at_the_same_consumer_it_goes_on(self, store: Store, attach: Attach) -> None:
        """Earlier ones in flight right here hold nothing."""
        send(store, *"012", key="k")
        consumer = attach(KEY_SHARED, window=1)
        assert [values(consumer, 1) for _ in range(3)] == [[b"0"], [b"1"], [b"2"]]

    @pytest.mark.parametrize("how", ["given back", "pending"])
    def test_one_given_back_or_pending_holds_its_key(
        self, store: Store, attach: Attach, clock: ManualClock, how: str
    ) -> None:
        """At its own consumer too; then the key goes on in order."""
        send(store, *"01", key="k")
        send(store, "other", key="l")
        consumer = attach(KEY_SHARED, window=1)
        (message,) = receive(consumer, 1)
        txn = store.begin_transaction()
        if how == "pending":
            consumer.acknowledge(message, txn=txn)
        else:
            consumer.negative_acknowledge(message, delay=30)
        assert values(consumer) == [b"other"]
        assert values(consumer) == []
        store.admin.transactions.abort_transaction(txn)
        clock.advance(30)
        assert [value for _ in range(2) for value in values(consumer)] == [b"0", b"1"]

    def test_an_empty_key_is_a_key(self, store: Store, attach: Attach) -> None:
        """It holds like any other; no key holds nothing."""
        send(store, *"01", key="")
        send(store, *"23")
        one, two = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
        receive(one, 1)
        assert values(two) == [b"2", b"3"]

    def test_within_a_batch_by_message(self, store: Store, attach: Attach) -> None:
        """Keys are looked at message by message, not entry by entry."""
        store.create_producer("t").send_batch([b"k0", b"l0", b"k1", b"n"], keys=["k", "l", "k", None])
        one, two = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
        assert values(one, 1) == [b"k0"]
        assert values(two) == [b"l0", b"n"]

    def test_a_message_is_acknowledged_behind_the_one_that_holds_its_key(
        self, store: Store, attach: Attach
    ) -> None:
        """In one batch of a transaction that was skipped, and has ended since."""
        producer, txn = store.create_producer("t"), store.begin_transaction()
        producer.send_batch([b"k0", b"l0"], keys=["k", "l"], txn=txn)
        producer.send(b"m0", key="m")
        consumer = attach(KEY_SHARED, on_open=OnOpen.SKIP)
        assert values(consumer) == [b"m0"]
        producer.send(b"k1", key="k")
        store.commit_transaction(txn)
        consumer.acknowledge(MessageId(1, 0, 1))
        assert values(consumer) == [b"k0", b"k1"]

    def test_a_dead_letter_in_waiting_holds_its_key(self, store: Store, attach: Attach) -> None:
        """A worn-out message whose transaction is undecided keeps the later ones of its key back."""
        producer, txn = store.create_producer("t"), store.begin_transaction()
        producer.send(b"poison", key="k", txn=txn)
        producer.send(b"later", key="k")
        consumer = attach(KEY_SHARED, subscription_isolation_level=RU, max_redeliver_count=0, window=1)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        assert values(consumer) == []
        store.commit_transaction(txn)
        assert values(consumer) == [b"later"]


class TestMessagesBehindATransaction:
    """With on-open skip: messages of a key that wait behind a transaction whose own message is acknowledged."""

    @pytest.mark.parametrize("way", ["acknowledge", "skip", "a new consumer", "a message to come"])
    def test_a_later_message_does_not_overtake_them(
        self, store: Store, clock: ManualClock, attach: Attach, way: str
    ) -> None:
        """Until dispatch comes to the marker and examines them, they block their key themselves."""
        producer, txn = store.create_producer("t"), store.begin_transaction(timeout=3600)
        consumer = attach(KEY_SHARED, window=1, on_open=OnOpen.SKIP)
        producer.send(b"first", key="k", txn=txn)
        producer.send(b"second", key="k")
        if way != "a message to come":
            producer.send(b"third", key="k", deliver_after=5.0)
        assert values(consumer) == []
        if way == "a message to come":
            producer.send(b"third", key="k")
        store.commit_transaction(txn)
        clock.advance(6)
        if way == "skip":
            store.admin.subscriptions.skip_messages("t", "a", 1)
        else:
            store.admin.acknowledgements.acknowledge_messages("t", "a", [MessageId(1, 0)])
        if way == "a new consumer":
            consumer.close()
            consumer = attach(KEY_SHARED, window=1)
        assert values(consumer, 1) == [b"second"]
        other = attach(KEY_SHARED)
        assert values(other) == []
        consumer.acknowledge(MessageId(1, 1))
        assert [*values(consumer, 1), *values(other, 1)] == [b"third"]

    def test_they_come_before_a_later_message_of_the_transaction(
        self, store: Store, clock: ManualClock, attach: Attach
    ) -> None:
        """Also where the transaction has a message of the key behind them that is not acknowledged."""
        producer, txn = store.create_producer("t"), store.begin_transaction(timeout=3600)
        consumer = attach(KEY_SHARED, window=1, on_open=OnOpen.SKIP)
        producer.send(b"first", key="k", txn=txn)
        producer.send(b"second", key="k")
        producer.send(b"third", key="k", deliver_after=5.0)
        producer.send(b"fourth", key="k", txn=txn)
        assert values(consumer) == []
        store.commit_transaction(txn)
        clock.advance(6)
        store.admin.acknowledgements.acknowledge_messages("t", "a", [MessageId(1, 0)])
        consumer.close()
        consumer = attach(KEY_SHARED, window=1)
        assert [values(consumer, 1) for _ in range(3)] == [[b"second"], [b"third"], [b"fourth"]]
