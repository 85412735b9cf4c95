"""Restoring a backup: a store of its own, in which nothing that was under way goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.errors import AlreadyExists


def test_open_transactions_end_and_positions_are_anothers(store: Store, tmp_path: Path) -> None:
    """The incarnation says that ids of before mean nothing here."""
    producer = store.create_producer("t")
    producer.send(b"plain")
    txn = store.begin_transaction()
    producer.send(b"open", txn=txn)
    store.maintenance.backup_store(tmp_path / "copy")
    Store.restore(tmp_path / "copy", tmp_path / "again")
    with Store.open(tmp_path / "again") as restored:
        assert restored.reports.list_transactions() == []
        (ended,) = restored.reports.list_transactions(ended=True)
        assert (str(ended.txn_id), ended.state.value, ended.reason) == (str(txn), "ABORTED", "incarnation")
        with restored.reader("t", start=EARLIEST) as reader:
            assert [message.value for message in reader] == [b"plain"]
        assert restored.reports.store_info().incarnation > store.reports.store_info().incarnation
        assert restored.maintenance.verify_store() == []
    assert [str(row.txn_id) for row in store.reports.list_transactions()] == [str(txn)]


def test_what_is_there_is_left(store: Store, tmp_path: Path) -> None:
    """A store above all."""
    store.maintenance.backup_store(tmp_path / "copy")
    Store.create(tmp_path / "there")
    with pytest.raises(AlreadyExists):
        Store.restore(tmp_path / "copy", tmp_path / "there")


def test_no_process_of_the_backed_up_store_has_a_lease_in_the_new_one(store: Store, tmp_path: Path) -> None:
    """The process lives, and has nothing to do with the copy: `store locks` would call it dead there.

    No reaping policy removes the leases before a writer comes, and the policy `manual` never does.
    """

    def leases(path: Path | str) -> list[str]:
        with Store.open(path, read_only=True) as opened:
            return [row.lock for row in opened.reports.list_locks() if row.lock.startswith("lease")]

    with store.transaction() as txn:
        store.create_producer("t").send(b"x", txn=txn)
        txn.flush()
        assert leases(store.path) != []
        store.maintenance.backup_store(tmp_path / "copy")
    Store.restore(tmp_path / "copy", tmp_path / "again")
    assert leases(tmp_path / "again") == []
