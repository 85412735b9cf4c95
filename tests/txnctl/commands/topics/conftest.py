"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import EARLIEST, IsolationLevel, Store, SubscriptionType


@pytest.fixture
def stuck(path: Path) -> dict[str, str]:
    """`orders` with an open transaction in the middle; the ids of what is in it.

    1:0 .. 1:3 plain; 1:4 aborted (marker 1:5); 1:6 first open (2 messages); 1:7 plain, 3 messages; 1:8 second open.
    """
    with Store.open(path) as store:
        store.create_topic("orders")
        producer = store.create_producer("orders", producer_name="loader")
        for number in range(4):
            producer.send(b"plain %d" % number, key=f"k{number}")
        aborted = store.begin_transaction()
        producer.send(b"aborted", txn=aborted)
        store.admin.transactions.abort_transaction(aborted)
        first = store.begin_transaction(labels={"job": "load"})
        producer.send_batch([b"open 0", b"open 1"], txn=first)
        producer.send_batch([b"later 0", b"later 1", None])
        second = store.begin_transaction()
        producer.send(b"second", txn=second)
        billing = store.subscribe(
            "orders", "billing", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        billing.acknowledge(billing.receive_batch(2, timeout=1))
        monitor = store.subscribe(
            "orders",
            "monitor",
            subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED,
            initial_position=EARLIEST,
        )
        monitor.acknowledge_cumulative(monitor.receive_batch(100, timeout=1)[-1])
        for each in (billing, monitor, producer):
            each.close()
    return {"first": str(first), "second": str(second), "aborted": str(aborted)}
