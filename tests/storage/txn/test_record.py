"""Record: `storage/txn/record.py`."""

from __future__ import annotations

import pytest

from storage import Store, TxnID
from storage.errors import (
    TransactionChanged,
)
from tests.row_json import row_json
from tests.storage.txn.coordinator_steps import acknowledge, produce


class TestVersion:
    """An operator ends what was looked at."""

    def test_every_use_raises_the_version(self, store: Store, txn: TxnID) -> None:
        """Producing and acknowledging are uses; looking is none."""
        before = row_json(store.reports.show_transaction(txn))["version"]
        assert row_json(store.reports.show_transaction(txn))["version"] == before
        produce(store, txn)
        assert row_json(store.reports.show_transaction(txn))["version"] == before + 1
        acknowledge(store, txn)
        assert row_json(store.reports.show_transaction(txn))["version"] == before + 2

    def test_another_version_is_not_aborted(self, store: Store, txn: TxnID) -> None:
        """What was used since is refused and stays open; the version that was seen is aborted."""
        seen = row_json(store.reports.show_transaction(txn))["version"]
        produce(store, txn)
        with pytest.raises(TransactionChanged) as caught:
            store.admin.transactions.abort_transaction(txn, if_version=seen)
        assert caught.value.details["version"] == seen + 1
        assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"
        store.admin.transactions.abort_transaction(txn, if_version=seen + 1)
        assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"
