"""Log: `storage/verify/log.py`."""

from __future__ import annotations

from storage import Store
from storage.disk.codec import key3
from storage.disk.schema import (
    ENTRIES,
    LEDGERS,
)
from tests.storage.damage import damage
from tests.storage.verify.verify_steps import TOPIC, remove_first


class TestTopics:
    """Logs, ledgers, transactions on them."""

    def test_an_entry_that_is_missing(self, written: Store) -> None:
        """Positions are dense (invariant 5)."""
        found = damage(written, lambda batch: batch.delete(ENTRIES, key3(TOPIC, 1, 1)))
        assert any(invariant == 5 or "does not follow" in message for invariant, message in found), found

    def test_a_ledger_whose_record_is_missing(self, written: Store) -> None:
        """What was closed is recorded."""
        assert damage(written, remove_first(LEDGERS))
