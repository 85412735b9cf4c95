"""The end of a transaction: its state, its reason, and whether an operator ended it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import AccessMode, Store, TxnID
from storage.errors import TransactionNotFound
from storage.values.txn_state import TransactionState
from tests.waiting import let_pass

ABORT = """
import sys
from storage import Store
with Store.open(sys.argv[1]) as store:
    store.admin.transactions.abort_transaction(sys.argv[2], force=True)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store on the system's clock: a clock that stands still gives every change one time."""
    Store.create(tmp_path / "store")
    with Store.open(tmp_path / "store") as opened:
        yield opened


def test_an_open_transaction_has_none(store: Store) -> None:
    """And an unknown one is an error."""
    assert store.reports.transaction_end(store.begin_transaction()) is None
    with pytest.raises(TransactionNotFound):
        store.reports.transaction_end(TxnID(99))


def test_a_commit_is_no_operators_end(store: Store) -> None:
    """It has no reason."""
    txn = store.begin_transaction()
    store.commit_transaction(txn)
    end = store.reports.transaction_end(txn)
    assert end is not None
    assert (end.state, end.reason, end.by_operator) == (TransactionState.COMMITTED, None, False)
    assert str(end).startswith("committed by ")


@pytest.mark.parametrize("how", ["abort", "force", "fence"])
def test_audited_ends_are_an_operators(store: Store, how: str) -> None:
    """An abort, a change by force, and a fence."""
    store.create_topic("t")
    txn = store.begin_transaction()
    with store.create_producer("t") as producer:
        producer.send(b"a", txn=txn)
    with Store.open(store.path, program="operator") as operator:
        if how == "abort":
            operator.admin.transactions.abort_transaction(txn, reason="stuck since noon")
        elif how == "force":
            operator.admin.topics.delete_topic("t", force=True)
        else:
            operator.admin.producers.fence_producers("t")
    end = store.reports.transaction_end(txn)
    assert end is not None
    assert end.by_operator
    if how == "abort":
        assert str(end).endswith(", asked: stuck since noon")


def test_a_take_over_is_no_operators_end(store: Store) -> None:
    """Another producer fences, and its process is no operator."""
    store.create_topic("t")
    txn = store.begin_transaction()
    with store.create_producer("t") as producer:
        producer.send(b"a", txn=txn)
    with Store.open(store.path, program="successor") as successor:
        successor.create_producer("t", access_mode=AccessMode.EXCLUSIVE_WITH_FENCING)
    end = store.reports.transaction_end(txn)
    assert end is not None
    assert (end.reason, end.by_operator) == ("fenced", False)


def test_ends_that_nobody_is_recorded_for_are_not(store: Store) -> None:
    """An abort through the transaction itself, and a passed deadline."""
    txn = store.transaction()
    txn_id = txn.id
    txn.abort("changed my mind")
    late = store.begin_transaction(timeout=0.001)
    let_pass(0.002, "the deadline")
    store.admin.transactions.reap_transactions()
    for ended, reason in ((txn_id, "asked"), (late, "timed-out")):
        end = store.reports.transaction_end(ended)
        assert end is not None
        assert (end.reason, end.by_operator) == (reason, False)


def test_an_abort_by_a_process_that_the_owner_has_started_is_its_own(store: Store) -> None:
    """Though it is in the audit trail, where that is said."""
    txn = store.transaction()
    subprocess.run([sys.executable, "-c", ABORT, store.path, str(txn)], check=True)
    end = store.reports.transaction_end(txn)
    assert end is not None
    assert (end.reason, end.by_operator) == ("asked", False)
    assert store.reports.list_audit_records(1)[0].effects["byOwnCommand"] is True
