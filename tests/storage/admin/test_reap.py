"""Reaping on request: overdue transactions end, in steps of a bounded size, and the trail names them."""

from __future__ import annotations

import pytest

from storage import Store
from storage.errors import InvalidValue
from storage.process.clock import ManualClock


def overdue(store: Store, clock: ManualClock, count: int) -> list[str]:
    """Transactions whose deadlines have passed."""
    store.admin.settings.set_reap_policy("manual")
    txns = [str(store.begin_transaction(timeout=10)) for _ in range(count)]
    clock.advance(11)
    return txns


def ended(store: Store) -> list[str]:
    """Ids of those that have ended."""
    return sorted(str(row.txn_id) for row in store.reports.list_transactions(ended=True))


def test_those_that_are_overdue_end(store: Store, clock: ManualClock) -> None:
    """Others do not; a record names those that did."""
    txns = overdue(store, clock, 3)
    young = store.begin_transaction(timeout=10)
    rows = store.admin.transactions.reap_transactions(reason="cleaning up after the test")
    assert sorted(str(row.txn_id) for row in rows) == txns == ended(store)
    assert [str(row.txn_id) for row in store.reports.list_transactions()] == [str(young)]
    (record,) = [row for row in store.reports.list_audit_records() if row.action == "transactions reap"]
    assert record.reason == "cleaning up after the test"
    assert sorted(record.effects["transactionsAborted"]) == txns


def test_a_limit_holds(store: Store, clock: ManualClock) -> None:
    """The rest is left for the next time."""
    overdue(store, clock, 3)
    assert len(store.admin.transactions.reap_transactions(limit=2)) == 2
    assert len(ended(store)) == 2
    assert len(store.admin.transactions.reap_transactions()) == 1


def test_a_trial_names_those_that_would_end(store: Store, clock: ManualClock) -> None:
    """And changes nothing."""
    txns = overdue(store, clock, 2)
    assert sorted(str(row.txn_id) for row in store.admin.transactions.reap_transactions(dry_run=True)) == txns
    assert ended(store) == []


def test_a_reason_that_is_none_is_refused(store: Store, clock: ManualClock) -> None:
    """Before anything ends."""
    overdue(store, clock, 1)
    with pytest.raises(InvalidValue):
        store.admin.transactions.reap_transactions(reason="...")
    assert ended(store) == []
