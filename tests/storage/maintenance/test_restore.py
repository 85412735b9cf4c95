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
