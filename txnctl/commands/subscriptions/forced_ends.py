"""Consumers evicted and transactions aborted before a subscription changes: the field and the lines."""

from __future__ import annotations

from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.output.row import Row
TRANSACTIONS_ABORTED = Field(
    "transactionsAborted", "list", "Open transactions with acknowledgements pending, aborted first."
)


def aborted_lines(row: Row) -> Iterator[str]:
    """Evicted consumers and aborted transactions, a kind a line."""
    verb = "would be" if row["dryRun"] else "were"
    if row.get("consumersEvicted"):
        yield f"Consumers {verb} evicted: {', '.join(row['consumersEvicted'])}."
    if row["transactionsAborted"]:
        yield f"Transactions {verb} aborted: {', '.join(row['transactionsAborted'])}."
