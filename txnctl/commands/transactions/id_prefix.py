"""A transaction by the first digits of the id."""

from __future__ import annotations

from storage.errors import TransactionNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context

    T = TypeVar("T")


def found_by_prefix(context: Context, txn: TxnID, show_one: Callable[[TxnID | str], T]) -> T:
    """Show the transaction of that id or, failing that, the only transaction with that prefix."""
    try:
        return show_one(txn)
    except TransactionNotFound:
        reports = context.store.reports
        rows = reports.list_transactions() + reports.list_transactions(ended=True)
        longer = [str(row.txn_id) for row in rows if str(row.txn_id).startswith(str(txn))]
        if len(longer) != 1:
            raise
    context.note(f"{txn} is taken for {longer[0]}, the only transaction whose id begins so")
    return show_one(longer[0])
