"""Transactions: `storage/verify/transactions.py`."""

from __future__ import annotations

from storage import Store
from storage.disk.codec import key1, key2
from storage.disk.schema import (
    PENDING,
    TXN_DEADLINES,
    TXNS,
)
from tests.storage.damage import damage
from tests.storage.verify.verify_steps import remove_first

COMMITTED, ABORTED_TXN, OPEN = 1, 2, 3


class TestTransactions:
    """Records and their indexes."""

    def test_a_deadline_that_is_not_indexed(self, written: Store) -> None:
        """Nobody would end it (invariant 6)."""
        assert 6 in {invariant for invariant, _ in damage(written, remove_first(TXN_DEADLINES))}

    def test_a_decided_one_that_is_indexed_as_open(self, written: Store) -> None:
        """It would be ended again (invariant 6)."""
        found = damage(written, lambda batch: batch.put(TXN_DEADLINES, key2(5, COMMITTED), b""))
        assert 6 in {invariant for invariant, _ in found}

    def test_a_record_that_is_missing(self, written: Store) -> None:
        """Its messages name it: outcomes are kept as long as they are (invariant 16)."""
        found = damage(written, lambda batch: batch.delete(TXNS, key1(COMMITTED)))
        assert found

    def test_a_pending_acknowledgement_found_one_way_only(self, written: Store) -> None:
        """It would not end with its transaction (invariant 6)."""
        found = damage(written, remove_first(PENDING))
        assert {invariant for invariant, _ in found} & {6, 7, 8}
