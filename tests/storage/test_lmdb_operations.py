"""Counted operations of LMDB: those of batches, and beside them those of views."""

from __future__ import annotations

from storage import Store
from storage.disk.schema import TXNS
from storage.disk.view import WriteBatch
from tests.storage.lmdb_operations import counted


def test_views_are_counted_beside_batches(store: Store) -> None:
    """A view's look-up, scan and number of records are reads of views, and no work under the writer gate."""
    txn = store.begin_transaction()
    with counted(store) as operations, store.connection.view() as view:
        key = next(view.keys(TXNS))
        assert view.has(TXNS, key)
        assert view.count(TXNS) == 1
        # A cursor, its place, its first record; a look-up; a number of records.
        assert (operations.views, operations.viewed.reads, operations.total) == (1, 4, 0)
    assert str(txn) == "0:1"


def test_batches_are_counted_each(store: Store) -> None:
    """The batch with the most operations is known, and the sum has those of views too."""

    def change(number: int) -> None:
        def put(batch: WriteBatch) -> None:
            for at in range(number):
                batch.put(TXNS, b"key %d" % at, b"value")
            for at in range(number):
                batch.delete(TXNS, b"key %d" % at)

        store.connection.write(put)

    with counted(store) as operations:
        change(3)
        change(30)
        with store.connection.view() as view:
            assert view.count(TXNS) == 0
    assert 60 <= operations.most < operations.writes < operations.total
    assert operations.overall == operations.total + operations.viewed.total
    assert operations.viewed.total == 1
