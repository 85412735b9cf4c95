"""Fixtures of the tests in this directory."""

from __future__ import annotations

import pytest

from storage import Store
from tests.txnctl.spark_stores import path, store

__all__ = ["path", "store"]


@pytest.fixture
def aborted_and_open(store: Store) -> Store:
    """Two topics with closed ledgers, aborted messages and an open transaction at the end; a table."""
    for topic in ("one", "two"):
        store.create_topic(topic, ledger_entries_max=4)
        with store.create_producer(topic) as producer:
            for number in range(11):
                values = [f"{topic}-{number}-{index}".encode() for index in range(3)]
                txn = store.transaction() if number % 3 == 2 else None
                producer.send_batch(values, keys=["k"] * 3, properties=[{"n": str(number)}] * 3, txn=txn)
                if txn is not None:
                    txn.flush()
                    txn.commit() if number % 2 else txn.abort()
            producer.send(b"open", txn=store.transaction())
    store.create_table("accounts")
    store.table("accounts").import_rows((b"B%03d" % number, b"%d" % number) for number in range(50))
    return store
