"""End a transaction in the way that a test case names."""

from __future__ import annotations

from storage import Store, TxnID


def end_transaction(store: Store, end: str, txn: TxnID) -> None:
    """Commit or abort.

    Args:
        end: `commit` or `abort`.
    """
    if end == "commit":
        store.commit_transaction(txn)
    else:
        store.admin.transactions.abort_transaction(txn)
