"""Skipped transactions as consumers see them: what was held comes when they end, and nothing is lost."""

from __future__ import annotations

import pytest

from storage import EARLIEST, MessageId, Store
from tests.storage.skip_walk_steps import (
    KEY_SHARED,
    Attach,
    classes,
    receive,
    send,
)


class TestShared:
    """Each open transaction holds back its own messages alone."""

    def test_ends_in_any_order(self, store: Store, attach_skipping: Attach) -> None:
        """The transaction that ends first comes first, whichever began first."""
        one, two, consumer = store.begin_transaction(), store.begin_transaction(), attach_skipping()
        send(store, "a", txn=one)
        send(store, "b", txn=two)
        send(store, "c", txn=one)
        assert receive(consumer) == ""
        store.commit_transaction(two)
        assert receive(consumer) == "b"
        store.commit_transaction(one)
        assert receive(consumer) == "a c"


class TestKeys:
    """Key_Shared: later messages of the keys that an open transaction carries wait for it (invariant 21)."""

    def test_what_others_passed_over_is_known(self, store: Store, path: str, attach_skipping: Attach) -> None:
        """A consumer of another process holds keys that it has never met."""
        txn, mine = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", txn=txn)
        send(store, "l=1")
        with Store.open(path) as other:
            theirs = other.subscribe("t", "a")
            assert receive(mine) == "1"
            send(store, "k=open l=open", txn=txn)
            send(store, "m=1")
            assert receive(theirs) == "1"
            send(store, "k=2 l=2 m=2")
            assert receive(mine) == "2"
            assert classes(store)["blocked"] == 2

    def test_the_keys_of_what_has_ended_are_forgotten(self, store: Store, attach_skipping: Attach) -> None:
        """Whether it was awaited, or only met while it was open."""
        consumer = attach_skipping(KEY_SHARED)
        for number in range(3):
            txn = store.begin_transaction()
            send(store, f"k{number}=open", txn=txn)
            if number:
                send(store, f"k{number}=1")
            assert receive(consumer) == ""
            store.commit_transaction(txn)
            assert receive(consumer) == ("open 1" if number else "open")
        assert not consumer._window._memory.blocked_keys.is_any

    @pytest.mark.parametrize("by", ["consumer", "operator", "skip", "transaction"])
    def test_an_acknowledged_message_blocks_its_key_no_longer(
        self, store: Store, attach_skipping: Attach, by: str
    ) -> None:
        """A committed message that is acknowledged before dispatch reaches the marker holds nothing back."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED, window=1)
        send(store, "k=open", txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        send(store, "k=2", "3")
        store.commit_transaction(txn)
        at, place = MessageId(1, 0), ("t", "a")
        if by == "consumer":
            consumer.acknowledge(at)
        elif by == "operator":
            store.admin.acknowledgements.acknowledge_messages(*place, [at])
        elif by == "skip":
            store.admin.subscriptions.skip_messages(*place, 1)
        else:
            other = store.begin_transaction()
            consumer.acknowledge(at, txn=other)
            store.commit_transaction(other)
        assert [receive(consumer) for _ in range(3)] == ["2", "3", ""]

    def test_a_later_message_of_the_transaction_blocks_the_key(
        self, store: Store, attach_skipping: Attach
    ) -> None:
        """The first message of the key is acknowledged, the second is not: only messages behind the second wait."""
        txn, consumer = store.begin_transaction(), attach_skipping(KEY_SHARED, window=1)
        send(store, "k=open", txn=txn)
        send(store, "1")
        send(store, "k=open2", txn=txn)
        send(store, "2")
        assert [receive(consumer) for _ in range(2)] == ["1", "2"]
        send(store, "k=3", "4")
        store.commit_transaction(txn)
        consumer.acknowledge(MessageId(1, 0))
        assert [receive(consumer) for _ in range(3)] == ["4", "open2", "3"]

    def test_a_seek_brings_back_the_keys_of_acknowledged_messages(
        self, store: Store, path: str, attach_skipping: Attach
    ) -> None:
        """A consumer that learned the keys after a seek forwards knows the earlier keys after a seek back."""
        txn, mine = store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open", "l=open", txn=txn)
        send(store, "0")
        store.admin.subscriptions.seek_subscription("t", "a", MessageId(1, 1))
        assert receive(mine) == "0"
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        with Store.open(path) as other:
            theirs = other.subscribe("t", "a")
            assert receive(theirs) == "0"
            send(store, "k=1 l=1 m=1")
            assert receive(mine) == "1"
            assert classes(store)["blocked"] == 2
