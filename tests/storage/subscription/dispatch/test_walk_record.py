"""Record: `storage/subscription/dispatch/walk_record.py`."""

from __future__ import annotations

from storage import Store
from storage.disk.schema import AWAITED, DELIVERIES, HELD
from tests.storage.skip_walk_steps import (
    Attach,
    classes,
    receive,
    send,
)


class TestShared:
    """Each open transaction holds back its own messages alone."""

    def test_passing_over_is_one_record(self, store: Store, attach_skipping: Attach) -> None:
        """However many messages a transaction has; nothing is acknowledged, or noted of each."""
        txn, consumer = store.begin_transaction(), attach_skipping()
        send(store, *["x y z"] * 50, txn=txn)
        send(store, "1")
        assert receive(consumer) == "1"
        with store.connection.view() as view:
            assert (view.count(AWAITED), view.count(HELD), view.count(DELIVERIES)) == (1, 0, 0)
        assert classes(store) == {"uncommitted": 150, "acknowledgedAhead": 1}

    def test_nothing_is_written_for_what_is_only_uncommitted(
        self, store: Store, attach_skipping: Attach
    ) -> None:
        """A waiting consumer does not answer each send of an open transaction with a commit of its own."""
        consumer, txn = attach_skipping(), store.begin_transaction()
        send(store, "a", txn=txn)
        before = store.connection.environment.last_commit()
        assert receive(consumer) == ""
        assert store.connection.environment.last_commit() == before
