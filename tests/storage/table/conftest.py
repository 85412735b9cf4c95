"""A store with the table `accounts`, and ways to leave a transaction committed but not finalised."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store, Table, TxnID
from storage.limits import FINALIZE_INLINE_MAX


@pytest.fixture
def table(store: Store) -> Table:
    """The table `accounts` of `store`, empty."""
    store.create_table("accounts")
    return store.table("accounts")


@pytest.fixture
def write_many(table: Table) -> Callable[[TxnID, dict[bytes, bytes]], None]:
    """Writes intents for some keys and so many others that the commit leaves them all unfinalised."""

    def write(txn: TxnID, values: dict[bytes, bytes]) -> None:
        for key, value in values.items():
            table.put(key, value, txn=txn)
        for number in range(FINALIZE_INLINE_MAX):
            table.put(b"~%d:%03d" % (txn.least, number), b"", txn=txn)

    return write
