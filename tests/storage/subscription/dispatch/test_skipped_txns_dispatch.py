"""Skipped transactions as consumers see them: what was held comes when they end, and nothing is lost."""

from __future__ import annotations

from storage import Store
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
