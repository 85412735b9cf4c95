"""Options: `storage/txn/options.py`."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import (
    BadInput,
)
from tests.row_json import row_json


class TestLabels:
    """What a transaction is called by its owner."""

    def test_they_are_kept(self, store: Store) -> None:
        """Labels are shown with the transaction, open or ended."""
        txn = store.begin_transaction(labels={"batch": "7", "job": "näch=tlich"})
        store.commit_transaction(txn)
        assert row_json(store.reports.show_transaction(txn))["labels"] == {"batch": "7", "job": "näch=tlich"}

    @pytest.mark.parametrize(
        "labels",
        [{"a b": "1"}, {"": "1"}, {"a": "x" * 1025}, {f"l{i}": "" for i in range(33)}, {"a": "\udcff"}, {"a": 1},
         {1: "a"}, {"a": None}],
    )  # fmt: skip
    def test_bad_ones_are_refused(self, store: Store, labels: dict[str, str]) -> None:
        """Names, lengths, number and text of labels have bounds."""
        with pytest.raises(BadInput):
            store.begin_transaction(labels=labels)
        assert row_json(store.reports.list_transactions()) == []
