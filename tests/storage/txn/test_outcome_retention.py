"""Forgetting how transactions ended, once nothing names them."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Producer, Store
from storage.errors import TransactionNotFound
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.ending import end_transaction

DAY_S = 24 * 3600


@pytest.fixture
def producer(store: Store) -> Producer:
    """Connected to `t`."""
    return store.create_producer("t")


def test_messages_keep_the_outcome_of_their_transaction(
    store: Store, producer: Producer, clock: ManualClock
) -> None:
    """As long as their topic is there; a topic of the same name is another one."""
    txn = store.begin_transaction()
    producer.send(b"x", txn=txn)
    store.commit_transaction(txn)
    clock.advance(2 * DAY_S)
    assert row_json(store.maintenance.collect_garbage())["outcomesRemoved"] == 0
    store.admin.topics.delete_topic("t", force=True)
    store.create_topic("t")
    assert row_json(store.reports.show_transaction(txn))["state"] == "COMMITTED"
    assert row_json(store.maintenance.collect_garbage(dry_run=True))["outcomesRemoved"] == 1
    assert row_json(store.maintenance.collect_garbage())["outcomesRemoved"] == 1
    with pytest.raises(TransactionNotFound):
        store.reports.show_transaction(txn)


@pytest.mark.parametrize("ends", ["commit", "abort"])
def test_acknowledgements_keep_it_only_while_they_are_pending(
    store: Store, producer: Producer, clock: ManualClock, ends: str
) -> None:
    """Decided, they are the subscription's, and name nobody."""
    producer.send(b"x")
    consumer = store.subscribe("t", "s", initial_position=EARLIEST)
    txn = store.begin_transaction(timeout=DAY_S)
    consumer.acknowledge(consumer.receive(timeout=0), txn=txn)
    clock.advance(DAY_S - 1)
    assert row_json(store.maintenance.collect_garbage())["outcomesRemoved"] == 0
    end_transaction(store, ends, txn)
    clock.advance(DAY_S - 1)
    assert row_json(store.maintenance.collect_garbage())["outcomesRemoved"] == 0
    clock.advance(1)
    assert row_json(store.maintenance.collect_garbage())["outcomesRemoved"] == 1
