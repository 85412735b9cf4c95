"""Change: `storage/admin/audited_change.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, Store
from storage.errors import (
    ObjectHeld,
    SubscriptionNotFound,
    TopicNotFound,
)
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.admin.administration_steps import attach, send
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages


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


DRY_RUNS: dict[str, Callable[[Store], object]] = {
    "clear-backlog": lambda store: store.admin.subscriptions.clear_backlog("t", "a", dry_run=True),
    "skip": lambda store: store.admin.subscriptions.skip_messages("t", "a", 4000, dry_run=True),
    "topics trim": lambda store: store.admin.topics.trim_topic("t", dry_run=True),
    "topics config": lambda store: store.admin.topics.set_retention(
        "t", time_ms=1000, hard="trim", dry_run=True
    ),
    "store gc": lambda store: store.maintenance.collect_garbage(dry_run=True),
    "transactions reap": lambda store: store.admin.transactions.reap_transactions(dry_run=True),
    "transactions abort": lambda store: store.admin.transactions.abort_transaction(
        store.reports.list_transactions()[0].txn_id, dry_run=True
    ),
    "subscriptions delete": lambda store: store.admin.subscriptions.delete_subscription(
        "t", "a", dry_run=True
    ),
    "topics truncate": lambda store: store.admin.topics.truncate_topic("t", force=True, dry_run=True),
}


@pytest.mark.parametrize("name", DRY_RUNS)
def test_a_dry_run_keeps_no_writer_waiting(store: Store, clock: ManualClock, name: str) -> None:
    """Whatever it counts: it changes an overlay over a view."""
    write_messages(store, "t", 5000)
    store.admin.subscriptions.create_subscription("t", "a", initial_position=EARLIEST)
    store.admin.topics.set_retention("t", time_ms=1000, hard="trim")
    txn = store.begin_transaction(timeout=3600)
    store.create_producer("t").send(b"x", txn=txn)
    clock.advance(10)
    with counted(store) as operations:
        DRY_RUNS[name](store)
    assert operations.total == 0
    assert store.reports.subscription_stats("t", "a").row.stats.msg_backlog == 5001
