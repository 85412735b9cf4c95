"""Consumers evicted and transactions aborted before a subscription changes: the field and the lines."""

from __future__ import annotations

from txnctl.output.field import Help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.values.txn_id import TxnID

TRANSACTIONS_ABORTED = {
    "transactions_aborted": Help("Open transactions with acknowledgements pending, aborted first.")
}


def aborted_lines(dry_run: bool, aborted: Sequence[TxnID], evicted: Sequence[str] = ()) -> Iterator[str]:
    """Evicted consumers and aborted transactions, a kind a line."""
    verb = "would be" if dry_run else "were"
    if evicted:
        yield f"Consumers {verb} evicted: {', '.join(evicted)}."
    if aborted:
        yield f"Transactions {verb} aborted: {', '.join([str(txn) for txn in aborted])}."
