"""What the coordinator may ask of whatever a transaction touched: a topic, a subscription, a table.

The coordinator knows its participants by this protocol alone; `store.py` hands them to it. Each part of a
transaction (TXN_PARTS) belongs to one participant by the kind in its key.
"""

from __future__ import annotations

from typing import Any, Protocol

from storage.disk.view import ReadView, WriteBatch
from storage.errors import TxnctlError


class Participant(Protocol):
    """Something that takes part in transactions."""

    kind: int
    """Of its parts in TXN_PARTS."""

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:
        """Why this part of a transaction must not be committed; None if it may. An error dooms the transaction."""

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> dict[str, Any]:
        """Make one part of a transaction final, within the store transaction that decides it.

        Returns:
            What it changed, for reports and dry runs.
        """

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> dict[str, Any]:
        """The part for `transactions show`."""
