"""The parts of a transaction's buffered content, and how a batch takes the parts."""

from __future__ import annotations

from typing import Protocol

from storage.disk.view import WriteBatch
from storage.txn.record import TransactionRecord


class Part(Protocol):
    """Buffered content of one kind. In a batch every part is checked first; then the parts are applied.

    A batch may come to nothing, or run again, so `check` and `apply` change the batch and the record only, and
    prepare for `settle`. `settle` and `discard` may be interrupted, and are then repeated.
    """

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""

    def check(self, batch: WriteBatch, record: TransactionRecord) -> None:
        """See that the content may be written.

        Raises:
            TxnctlError: nothing is written. A durable refusal leaves the doom of the transaction.
        """

    def apply(self, batch: WriteBatch, record: TransactionRecord, *, commits: bool) -> None:
        """Write the content, after every part has passed its check.

        Args:
            commits: the transaction commits in this batch, instead of staying open.
        """

    def settle(self) -> None:
        """Drop the content, which is committed."""

    def discard(self) -> None:
        """Drop the content, which never will be committed."""
