"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.process.clock import ManualClock
from tests.storage.reports.stats_steps import RU


@pytest.fixture
def busy(store: Store, clock: ManualClock) -> Store:
    """Topic `t`: 2 plain, 3 aborted, 2 of an open transaction, 4 behind it; subscriptions E, D and S."""
    producer = store.create_producer("t")
    producer.send_batch([b"0", b"1"])
    aborted = store.begin_transaction()
    producer.send_batch([b"x"] * 3, txn=aborted)
    store.admin.transactions.abort_transaction(aborted)
    producer.send_batch([b"open"] * 2, txn=store.begin_transaction(labels={"job": "7"}))
    clock.advance(90)
    producer.send_batch([b"behind"] * 4)
    store.admin.subscriptions.create_subscription("t", "E", initial_position=EARLIEST)
    store.admin.subscriptions.create_subscription(
        "t",
        "D",
        initial_position=EARLIEST,
        subscription_isolation_level=RU,
        subscription_type=SubscriptionType.SHARED,
    )
    store.admin.subscriptions.create_subscription("t", "S", initial_position=EARLIEST)
    return store
