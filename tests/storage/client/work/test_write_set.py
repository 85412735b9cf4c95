"""The write set of a transaction alone: what it holds, how it merges into reads, and what a batch makes of it."""

from __future__ import annotations

import pytest

from storage import Store, Table, TxnID
from storage.client.work.write_set import WriteSet
from storage.disk.view import WriteBatch
from storage.errors import TableNotFound, WriteTooOld
from storage.limits import BUFFER_BYTES_MAX
from storage.table.catalogue import TableEntry
from storage.table.key_range import KeyRange
from storage.table.visibility import Row
from storage.table.write import Write
from storage.txn import record as records
from tests.row_json import row_json


def new_set(store: Store, **capacity: int) -> WriteSet:
    return WriteSet(store.connection, store.engine.coordinator, **capacity)


def put(key: bytes, value: bytes | None = b"v", table_id: int = 1) -> Write:
    return Write(TableEntry("accounts", table_id, 0, {}), key, value)


def apply(store: Store, write_set: WriteSet, txn: TxnID) -> None:
    """Check and apply in one batch, as a flush does."""

    def change(batch: WriteBatch) -> None:
        record = records.get(batch, txn.least)
        write_set.check(batch, record)
        write_set.apply(batch, record, commits=False)
        records.save(batch, record)

    store.connection.write(change, naming=txn.least)


class TestBuffer:
    """What fits, and what is found again."""

    def test_a_later_write_replaces_an_earlier_one(self, store: Store) -> None:
        """Of its key in its table; and the bytes of the earlier one are free again."""
        write_set, half = new_set(store), b"x" * (BUFFER_BYTES_MAX // 2 - 2)
        for value in (half, half, None):
            write_set.add(put(b"k", value))
        found = write_set.find(1, b"k")
        assert found is not None
        assert (found.value, write_set.find(2, b"k"), write_set.find(1, b"j")) == (None, None, None)
        write_set.add(put(b"a", half))
        assert write_set.has_room(put(b"b", half))

    def test_keys_and_bytes_are_bounded(self, store: Store) -> None:
        """A value above the bound is taken alone."""
        write_set, large = new_set(store, keys_max=2), b"x" * (BUFFER_BYTES_MAX + 1)
        assert write_set.has_room(put(b"a", large))
        write_set.add(put(b"a"))
        assert not write_set.has_room(put(b"b", large))
        write_set.add(put(b"b"))
        assert not write_set.has_room(put(b"c"))
        write_set.discard()
        assert write_set.is_empty
        assert write_set.has_room(put(b"c"))

    def test_without_capacity_nothing_fits(self, store: Store) -> None:
        """Every write is placed at once."""
        write_set = new_set(store, keys_max=0)
        assert write_set.is_immediate
        assert not write_set.has_room(put(b"a"))


class TestMerging:
    """Buffered writes among the rows of a page."""

    @pytest.mark.parametrize("reverse", [False, True])
    def test_writes_replace_add_and_remove_rows(self, store: Store, reverse: bool) -> None:
        """In the order of the page, with the version of the transaction."""
        write_set = new_set(store)
        for key, value in ((b"a", b"new"), (b"b", None), (b"c", b"own"), (b"z", b"outside")):
            write_set.add(put(key, value))
        write_set.add(put(b"b", b"of another table", table_id=2))
        rows = [Row(key, b"old", 1, 1) for key in (b"a", b"b", b"d")]
        part = KeyRange(b"a", b"m", reverse)
        merged = write_set.merged(1, rows[::-1] if reverse else rows, part, None, (9, 3))
        seen = [tuple(row) for row in merged]
        expected = [(b"a", b"new", 9, 3), (b"c", b"own", 9, 3), (b"d", b"old", 1, 1)]
        assert seen == (expected[::-1] if reverse else expected)

    def test_what_lies_behind_the_page_comes_with_the_next(self, store: Store) -> None:
        """A page that is full does not reach the end of the range."""
        write_set, part = new_set(store), KeyRange(b"a", None, False)
        for key in (b"b", b"x"):
            write_set.add(put(key))
        merged = write_set.merged(1, [], part, part.after(b"m"), (9, 3))
        assert [row.key for row in merged] == [b"b"]


class TestBatch:
    """What a batch makes of the writes."""

    def test_a_flush_leaves_intents(self, store: Store, table: Table) -> None:
        """The commit makes versions of them; settling empties the set."""
        write_set, txn = new_set(store), store.begin_transaction()
        write_set.add(put(b"k", table_id=table.table_id))
        apply(store, write_set, txn)
        write_set.settle()
        assert write_set.is_empty
        assert [row.key for row in store.reports.list_intents()] == [b"k"]
        store.commit_transaction(txn)
        assert table.get(b"k") == b"v"

    def test_a_commit_leaves_versions(self, store: Store, table: Table) -> None:
        """No intent is written where the transaction is decided in the same batch."""
        write_set, txn = new_set(store), store.begin_transaction()
        write_set.add(put(b"k", table_id=table.table_id))

        def change(batch: WriteBatch) -> None:
            def prepare(record: records.TransactionRecord) -> None:
                write_set.check(batch, record)
                write_set.apply(batch, record, commits=True)

            store.engine.coordinator.commit(batch, txn.least, store.connection.identity, prepare)

        store.connection.write(change, naming=txn.least)
        assert (row_json(store.reports.list_intents()), table.get(b"k")) == ([], b"v")

    def test_a_refusal_leaves_the_doom_only(self, store: Store, table: Table) -> None:
        """One key is too old: the transaction is aborted, durably, and no key is written."""
        write_set, txn = new_set(store), store.begin_transaction()
        for key in (b"a", b"b"):
            write_set.add(put(key, table_id=table.table_id))
        table.put(b"b", b"newer")
        with pytest.raises(WriteTooOld):
            apply(store, write_set, txn)
        assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"
        assert (table.get(b"a"), table.get(b"b"), row_json(store.reports.list_intents())) == (
            None,
            b"newer",
            [],
        )
        assert not write_set.is_empty, "the holder of the set discards it"

    def test_losers_are_aborted_when_everything_has_passed(self, store: Store, table: Table) -> None:
        """A check alone aborts nobody."""
        loser, winner = store.begin_transaction(priority="low"), store.begin_transaction()
        table.put(b"k", b"loser", txn=loser)
        write_set = new_set(store)
        write_set.add(put(b"k", b"winner", table_id=table.table_id))
        store.connection.write(
            lambda batch: write_set.check(batch, records.get(batch, winner.least)), naming=winner.least
        )
        assert row_json(store.reports.show_transaction(loser))["state"] == "OPEN"
        apply(store, write_set, winner)
        assert row_json(store.reports.show_transaction(loser))["state"] == "ABORTED"

    def test_a_table_that_is_gone_is_refused(self, store: Store) -> None:
        """The transaction stays open."""
        write_set, txn = new_set(store), store.begin_transaction()
        write_set.add(put(b"k", table_id=99))
        with pytest.raises(TableNotFound):
            apply(store, write_set, txn)
        assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"
