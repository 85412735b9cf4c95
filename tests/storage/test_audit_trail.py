"""The audit trail: expiries are in it, each in the commit that ends the transaction, and it has bounds."""

from __future__ import annotations

import pytest

from storage import Store, audit_trail
from storage.audit_trail import Kind
from storage.clock import ManualClock
from storage.errors import TransactionTimedOut
from storage.schema import AUDIT


class TestExpiry:
    """Transactions that nobody ended."""

    def test_a_reaped_transaction_leaves_a_record(self, store: Store, clock: ManualClock) -> None:
        """Whose it was, why it ended, what was dropped, and who came by."""
        txn = store.begin(timeout=1, labels={"job": "nightly"})
        store.create_producer("t").send_batch([b"1", b"2"], txn=txn)
        clock.advance(2.0)
        store.create_producer("t").send(b"3")
        (row,) = store.audit()
        assert (row["action"], row["target"], row["reason"]) == ("transaction expired", str(txn), "timed-out")
        assert row["by"] and row["effects"] == {
            "owner": store.show_transaction(txn)["owner"],
            "labels": {"job": "nightly"},
            "messagesDiscarded": 2,
            "acknowledgementsReleased": 0,
        }

    def test_one_that_its_own_client_finds_too_late(self, store: Store, clock: ManualClock) -> None:
        """The refusal, the abort and the record are one commit."""
        txn = store.begin(timeout=1)
        clock.advance(2.0)
        with pytest.raises(TransactionTimedOut):
            store.commit(txn)
        assert [(row["target"], row["reason"]) for row in store.audit()] == [(str(txn), "timed-out")]

    def test_what_was_asked_for_is_no_expiry(self, store: Store) -> None:
        """Commits, and aborts by their own client, leave nothing."""
        store.commit(store.begin())
        with pytest.raises(ZeroDivisionError), store.transaction():
            _ = 1 // 0
        assert [row["action"] for row in store.audit()] == []


class TestBounds:
    """It does not grow for ever."""

    def test_expiries_are_forgotten_and_changes_are_not(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each kind by its own bound, in the commit that adds one."""
        monkeypatch.setitem(audit_trail._KEPT, Kind.EXPIRY, 3)
        monkeypatch.setitem(audit_trail._KEPT, Kind.CHANGE, 8)
        owner = store.connection.owner
        for number in range(1, 11):
            kind = Kind.CHANGE if number % 5 == 1 else Kind.EXPIRY
            store.connection.write(
                lambda batch, kind=kind: audit_trail.record(batch, owner, kind.name, "x", None, {}, kind)
            )
        assert [row["number"] for row in store.audit()] == [10, 9, 8, 6, 1]
        assert [row["number"] for row in store.audit(2)] == [10, 9]
        store.connection.write(lambda batch: audit_trail.record(batch, owner, "CHANGE", "x", None, {}))
        assert [row["number"] for row in store.audit()] == [11, 10, 9, 8, 6]

    def test_a_lowered_bound_is_reached(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """Two are removed for each that is added."""
        owner = store.connection.owner

        def add() -> None:
            store.connection.write(
                lambda batch: audit_trail.record(batch, owner, "x", "x", None, {}, Kind.EXPIRY)
            )

        for _ in range(20):
            add()
        monkeypatch.setitem(audit_trail._KEPT, Kind.EXPIRY, 5)
        for _ in range(20):
            add()
        with store.connection.view() as view:
            assert view.count(AUDIT) == 5
