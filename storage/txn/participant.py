"""Participants of a transaction: the protocol by which the coordinator ends topics', subscriptions' and tables' parts.

The coordinator knows participants by this protocol alone; the engine gives the implementations to the coordinator.
Each part of a transaction (TXN_PARTS) belongs to one participant, by the kind in the key.
"""

from __future__ import annotations

from typing import Any, Protocol

from storage.disk.view import ReadView, WriteBatch
from storage.errors import TxnctlError


class Participant(Protocol):
    """A topic, subscription or table that takes part in transactions."""

    kind: int
    """The kind of the parts in TXN_PARTS."""

    def refusal(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> TxnctlError | None:
        """The error that forbids the commit of this part, and dooms the transaction; None if there is none."""

    def decide(
        self, batch: WriteBatch, txn: int, object_id: int, part: memoryview, committed: bool
    ) -> dict[str, Any]:
        """Make one part of a transaction final, within the store transaction that decides the transaction.

        Returns:
            The effects, for reports and dry runs.
        """

    def describe(self, view: ReadView, txn: int, object_id: int, part: memoryview) -> dict[str, Any]:
        """Describe the part for `transactions show`."""
