"""Selection: `storage/subscription/dispatch/walk_result.py`."""

from __future__ import annotations

import pytest

from storage import Store, SubscriptionType
from tests.row_json import row_json
from tests.storage.skip_walk_steps import (
    KEY_SHARED,
    SKIPPING,
    Attach,
    classes,
    receive,
    send,
)


class TestShared:
    """Each open transaction holds back its own messages alone."""

    @SKIPPING
    @pytest.mark.parametrize("window", [1, 2, 3])
    def test_nothing_is_lost_where_the_room_ends(
        self, store: Store, attach_skipping: Attach, type_: SubscriptionType, window: int
    ) -> None:
        """A transaction larger than a window comes in parts, and what follows it too."""
        txn, consumer = store.begin_transaction(), attach_skipping(type_, window=window)
        send(store, "a b c", "d", "e f", txn=txn)
        send(store, "1 2", "3")
        assert [receive(consumer) for _ in range(3)] == {
            1: ["1", "2", "3"], 2: ["1 2", "3", ""], 3: ["1 2 3", "", ""]
        }[window]  # fmt: skip
        store.commit_transaction(txn)
        send(store, "4")
        parts = [receive(consumer) for _ in range(8)]
        assert sorted(" ".join(parts).split()) == ["4", "a", "b", "c", "d", "e", "f"]
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:6"


class TestKeys:
    """Key_Shared: later messages of the keys that an open transaction carries wait for it (invariant 21)."""

    def test_many_held_ones_hold_up_nobody(
        self, store: Store, attach_skipping: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are not met again before their transaction ends, so that their number has no bound."""
        monkeypatch.setattr("storage.subscription.dispatch.next_messages.HELD_MESSAGES_MAX", 2)
        consumer = attach_skipping(KEY_SHARED)
        send(store, "k=a", "k=b", "k=c", "k=d", txn=store.begin_transaction())
        for _ in range(5):
            send(store, "k=1 k=2 k=3")
        send(store, "l=1")
        assert receive(consumer) == "1"
        assert classes(store)["blocked"] == 15
