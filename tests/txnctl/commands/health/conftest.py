"""Fixtures of the tests in this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import EARLIEST, IsolationLevel, Store
from tests.txnctl.an_hour_ago import an_hour_ago


@pytest.fixture
def path(hour_old: Path) -> Path:
    """A store with the topic `orders`, to which `billing` subscribes, and the table `balances`."""
    return hour_old


@pytest.fixture
def monitored(path: Path) -> Path:
    """The same store, where `monitor` reads everything, and `billing` what is committed."""
    level = IsolationLevel.READ_UNCOMMITTED
    with Store.open(path, clock=an_hour_ago()) as store:
        store.admin.subscriptions.create_subscription(
            "orders", "monitor", initial_position=EARLIEST, subscription_isolation_level=level
        )
    return path


@pytest.fixture
def stuck(path: Path) -> None:
    """0:1 holds a key and two messages, three wait behind them; 0:2 is past its deadline. All an hour ago."""
    with Store.open(path, clock=an_hour_ago()) as store:
        producer = store.create_producer("orders", producer_name="loader")
        txn = store.begin_transaction(timeout=7200)
        producer.send_batch([b"half"] * 2, txn=txn)
        store.table("balances").put(b"B1", b"100", txn=txn)
        producer.send_batch([b"whole"] * 3)
        producer.close()
        store.begin_transaction(timeout=60)
