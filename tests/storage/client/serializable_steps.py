"""Steps that the tests of serializable share."""

from __future__ import annotations

from collections.abc import Callable

from storage import Store, Table, Transaction, TxnID

Begin = Callable[[], TxnID | Transaction]


def put_and_commit(
    store: Store, table: Table, txn: TxnID | Transaction, key: bytes, value: bytes | None
) -> None:
    """An attached one is refused at its commit, a detached one at the put."""
    if value is None:
        table.delete(key, txn=txn)
    else:
        table.put(key, value, txn=txn)
    store.commit_transaction(txn)
