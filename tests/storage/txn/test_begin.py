"""Begin: `storage/txn/begin.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store, TxnID
from storage.errors import (
    InvalidTxnId,
    TransactionNotFound,
)
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.txn.coordinator_steps import USES

MISSING = TxnID(99)


class TestIds:
    """`0:n`, in order, never reused."""

    def test_ids_are_issued_in_order(self, store: Store) -> None:
        """Attached and detached transactions count on in one sequence."""
        assert [str(store.begin_transaction()), str(store.transaction()), str(store.begin_transaction())] == [
            "0:1",
            "0:2",
            "0:3",
        ]

    def test_an_id_is_not_reused_after_its_end(self, store: Store, path: str, clock: ManualClock) -> None:
        """Neither an end nor a new opening of the store frees an id (invariant 16)."""
        store.commit_transaction(store.begin_transaction())
        store.close()
        with Store.open(path, clock=clock) as again:
            assert str(again.begin_transaction()) == "0:2"

    @pytest.mark.parametrize("form", [lambda t: t, str, lambda t: f"(0,{t.least})", lambda t: str(t.least)])
    def test_every_form_of_an_id_names_the_transaction(
        self, store: Store, txn: TxnID, form: Callable[[TxnID], TxnID | str]
    ) -> None:
        """A TxnID and the three texts are accepted alike."""
        store.create_producer("t").send(b"x", txn=form(txn))
        assert store.commit_transaction(form(txn))

    @pytest.mark.parametrize("wrong", [TxnID(0), TxnID(-1), TxnID(1, 7), "0:0", "nonsense", "", 1, None])
    def test_what_is_no_id_is_refused(self, store: Store, wrong: object) -> None:
        """Nothing else names a transaction; least of all is a message published plainly instead."""
        for call in (
            store.commit_transaction,
            store.admin.transactions.abort_transaction,
            store.reports.show_transaction,
        ):
            with pytest.raises(InvalidTxnId):
                call(wrong)  # type: ignore[arg-type]
        if wrong is not None:
            with pytest.raises(InvalidTxnId):
                store.create_producer("t").send(b"x", txn=wrong)  # type: ignore[arg-type]
        assert list(row_json(store.reports.topic_log("t"))) == []

    def test_an_unknown_transaction_is_not_found(self, store: Store, txn: TxnID) -> None:
        """Every use of an id that was never issued says so."""
        for call in (
            store.commit_transaction,
            store.admin.transactions.abort_transaction,
            store.reports.show_transaction,
            store.reports.wait_for_transaction,
        ):
            with pytest.raises(TransactionNotFound):
                call(MISSING)
        for use in USES:
            with pytest.raises(TransactionNotFound):
                use(store, MISSING)
