"""Skipped: `storage/reports/skipped.py`."""

from __future__ import annotations

from storage import Store
from tests.row_json import row_json
from tests.storage.skip_walk_steps import (
    KEY_SHARED,
    Attach,
    receive,
    send,
)


class TestVisibleSet:
    """Skipping, looking and counting go by what the subscription may be handed."""

    def test_who_holds_how_much(self, store: Store, attach_skipping: Attach) -> None:
        """By transaction, its own messages and those behind it; the chain counts the same."""
        one, two, consumer = store.begin_transaction(), store.begin_transaction(), attach_skipping(KEY_SHARED)
        send(store, "k=open open", txn=one)
        send(store, "l=open", txn=two)
        send(store, "k=1 k=2 l=1 m=1")
        assert receive(consumer) == "1"
        held = row_json(store.reports.subscription_stats("t", "a"))["heldBy"]
        assert held == [
            {"txnId": str(one), "uncommitted": 2, "blocked": 2},
            {"txnId": str(two), "uncommitted": 1, "blocked": 1},
        ]
        assert [row["unblocks"] for row in row_json(store.reports.list_blocking_transactions("t"))] == [
            {"a": 2},
            {"a": 1},
        ]
        blocked = consumer.blocked_by()
        assert blocked is not None
        assert (blocked.messages, blocked.uncommitted, blocked.txn_id) == (3, 3, one)
