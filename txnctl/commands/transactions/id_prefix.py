"""A transaction by the first digits of the id."""

from __future__ import annotations

from storage.errors import TransactionNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from storage.values.txn_id import TxnID
    from txnctl.cli.context import Context
    from txnctl.output.row import Row


def found_by_prefix(context: Context, txn: TxnID, show_one: Callable[[TxnID | str], Row]) -> Row:
    """Show the transaction of that id or, failing that, the only transaction with that prefix."""
    try:
        return show_one(txn)
    except TransactionNotFound:
        rows = context.store.reports.list_transactions() + context.store.reports.list_transactions(ended=True)
        longer = [str(row["txnId"]) for row in rows if str(row["txnId"]).startswith(str(txn))]
        if len(longer) != 1:
            raise
    context.note(f"{txn} is taken for {longer[0]}, the only transaction whose id begins so")
    return show_one(longer[0])
