"""Fixtures of the tests in this folder."""

from __future__ import annotations

import pytest

from storage import Store, TxnID


@pytest.fixture
def txn(store: Store) -> TxnID:
    """An open transaction with a deadline in a minute; topic `t` has a message."""
    store.create_producer("t").send(b"plain")
    return store.begin_transaction(timeout=60)
