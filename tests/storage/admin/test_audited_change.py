"""Change: `storage/admin/audited_change.py`."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import (
    ObjectHeld,
    SubscriptionNotFound,
    TopicNotFound,
)
from tests.row_json import row_json
from tests.storage.admin.administration_steps import attach, send


class TestDelete:
    """Topics and subscriptions go with all they have."""

    def test_a_topic_with_a_consumer_is_held(self, store: Store) -> None:
        """By force the consumer is evicted; its handle is told."""
        send(store, 1)
        consumer = attach(store, consumer_name="mine")
        with pytest.raises(ObjectHeld) as caught:
            store.admin.topics.delete_topic("t")
        assert caught.value.details["consumers"] == ["mine"]
        assert row_json(store.admin.topics.delete_topic("t", force=True))["consumersEvicted"] == ["mine"]
        with pytest.raises((SubscriptionNotFound, TopicNotFound)):
            consumer.receive(timeout=0)
        consumer.close()

    def test_a_transaction_that_committed_there_is_still_known(self, store: Store) -> None:
        """Its outcome outlives the topic."""
        with store.transaction() as txn:
            send(store, 1, txn=txn)
        store.admin.topics.delete_topic("t", force=True)
        assert row_json(store.reports.show_transaction(txn.id))["state"] == "COMMITTED"
        assert store.commit_transaction(txn.id) is False
