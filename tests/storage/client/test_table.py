"""Table: `storage/client/table.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import cast

import pytest

from storage import CheckMode, Store, Table, TransactionIsolation, TxnID, faults
from storage.disk.connection import Connection
from storage.disk.schema import ROWS
from storage.disk.view import ReadView
from storage.errors import (
    ConditionFailed,
    InvalidValue,
    LostConflict,
    TableNotFound,
    TransactionNotOpen,
    TransactionTimedOut,
    WriteTooOld,
)  # fmt: skip
from storage.limits import BUFFER_KEYS_MAX
from storage.process.clock import ManualClock
from storage.table import catalogue, report
from storage.table.key_range import KeyRange
from tests.row_json import row_json
from tests.storage.client.serializable_steps import Begin, put_and_commit


class TestWriting:
    """Intents, versions, pushes among writers."""

    def test_a_key_with_a_later_version_is_not_written(
        self, store: Store, table: Table, begin: Begin
    ) -> None:
        """An older writer comes too late, though nobody has read the key."""
        old = begin()
        version = table.put(b"k", b"new")
        with pytest.raises(WriteTooOld) as raised:
            put_and_commit(store, table, old, b"k", b"old")
        assert raised.value.details["winnerVersion"] == str(version)
        assert table.get(b"k") == b"new"

    def test_an_older_writer_loses_to_a_newer_intent(self, store: Store, table: Table) -> None:
        """With equal priority, whichever of them comes to the key first."""
        older, newer = store.begin_transaction(), store.begin_transaction()
        table.put(b"k", b"newer", txn=newer)
        with pytest.raises(LostConflict):
            table.put(b"k", b"older", txn=older)
        store.commit_transaction(newer)
        assert table.get(b"k") == b"newer"

    def test_an_older_writer_of_higher_priority_wins_over_a_newer_intent(
        self, store: Store, table: Table
    ) -> None:
        """The newer one is aborted and told; its version never shows."""
        older, newer = store.begin_transaction(priority="highest"), store.begin_transaction()
        table.put(b"k", b"newer", txn=newer)
        table.put(b"k", b"older", txn=older)
        with pytest.raises(LostConflict):
            store.commit_transaction(newer)
        store.commit_transaction(older)
        assert table.get(b"k") == b"older"

    def test_a_newer_writer_pushes_an_older_intent(self, store: Store, table: Table) -> None:
        """And a lower one it cannot."""
        older, newer, low = (
            store.begin_transaction(),
            store.begin_transaction(),
            store.begin_transaction(priority="lowest"),
        )
        table.put(b"k", b"older", txn=older)
        table.put(b"k", b"newer", txn=newer)
        assert row_json(store.reports.show_transaction(older))["conflict"]["winner"] == str(newer)
        with pytest.raises(LostConflict):
            table.put(b"k", b"low", txn=low)
        store.commit_transaction(newer)

    def test_a_refused_write_pushes_nobody(self, store: Store, table: Table) -> None:
        """What was read or committed later is judged before any push: the intent in the way stays."""
        old, holder = store.transaction(priority="highest"), store.begin_transaction()
        table.put(b"a", b"held", txn=holder)
        table.put(b"b", b"new")
        table.put(b"a", b"x", txn=old)
        table.put(b"b", b"x", txn=old)
        with pytest.raises(WriteTooOld):
            old.commit()
        assert row_json(store.reports.show_transaction(holder))["state"] == "OPEN"
        store.commit_transaction(holder)
        assert (table.get(b"a"), table.get(b"b")) == (b"held", b"new")

    def test_one_lost_push_of_many_pushes_nobody(self, store: Store, table: Table) -> None:
        """All are judged before anyone is aborted: the loser takes nobody with it."""
        low, high = store.begin_transaction(priority="low"), store.begin_transaction(priority="high")
        table.put(b"a", b"low", txn=low)
        table.put(b"b", b"high", txn=high)
        txn = store.transaction()
        table.put(b"a", b"x", txn=txn)
        table.put(b"b", b"x", txn=txn)
        with pytest.raises(LostConflict):
            txn.commit()
        assert [row_json(store.reports.show_transaction(each))["state"] for each in (low, high)] == [
            "OPEN",
            "OPEN",
        ]

    def test_a_committed_intent_that_is_not_finalised_counts_as_a_version(
        self, store: Store, table: Table, write_many: Callable[[TxnID, dict[bytes, bytes]], None]
    ) -> None:
        """An older writer is too old for it; a newer one supersedes it and finalises it on the way."""
        older, writer = store.begin_transaction(), store.begin_transaction()
        write_many(writer, {b"k": b"1"})
        store.commit_transaction(writer)
        assert row_json(table.stats())["intents"] == 65
        with pytest.raises(WriteTooOld):
            table.put(b"k", b"x", txn=older)
        table.put(b"k", b"2")
        assert [each.value for each in table.versions(b"k")] == [b"2", b"1"]
        assert row_json(table.stats())["intents"] == 64

    def test_an_aborted_intent_that_is_not_removed_is_nothing(
        self, store: Store, table: Table, write_many: Callable[[TxnID, dict[bytes, bytes]], None]
    ) -> None:
        """Nobody sees it, and the next writer removes it."""
        table.put(b"k", b"0")
        older, writer = store.begin_transaction(), store.begin_transaction()
        write_many(writer, {b"k": b"1"})
        store.admin.transactions.abort_transaction(writer)
        assert (table.get(b"k"), table.get(b"k", txn=store.begin_transaction())) == (b"0", b"0")
        with pytest.raises(WriteTooOld):
            table.put(b"k", b"x", txn=older)  # a later transaction has read it
        table.put(b"k", b"2")
        assert [each.value for each in table.versions(b"k")] == [b"2", b"0"]

    def test_an_aborted_transaction_leaves_nothing(self, store: Store, table: Table, begin: Begin) -> None:
        """Its puts and deletions are gone, and the keys are free."""
        table.put(b"a", b"1")
        txn = begin()
        table.put(b"a", b"2", txn=txn)
        table.put(b"b", b"2", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert [(row.key, row.value) for row in table.scan()] == [(b"a", b"1")]
        assert row_json(table.intents()) == []
        table.put(b"b", b"3")

    def test_a_transaction_past_its_deadline_is_aborted(
        self, store: Store, table: Table, clock: ManualClock, begin: Begin
    ) -> None:
        """Reading, writing and committing after it are refused, durably."""
        txn = begin()
        table.put(b"k", b"v", txn=txn)
        clock.advance(601)
        with pytest.raises(TransactionTimedOut):
            store.commit_transaction(txn)
        for action in (lambda: table.get(b"x", txn=txn), lambda: table.put(b"x", b"", txn=txn)):
            with pytest.raises((TransactionTimedOut, TransactionNotOpen)):
                action()
        assert table.get(b"k") is None

    def test_an_ended_transaction_is_not_used(self, store: Store, table: Table, begin: Begin) -> None:
        """Neither committed nor aborted; committing it again succeeds."""
        done, dropped = begin(), begin()
        table.put(b"a", b"1", txn=done)
        store.commit_transaction(done)
        store.admin.transactions.abort_transaction(dropped)
        for txn in (done, dropped):
            with pytest.raises(TransactionNotOpen):
                table.get(b"a", txn=txn)
            with pytest.raises(TransactionNotOpen):
                table.put(b"a", b"2", txn=txn)
        assert store.commit_transaction(done) is False
        with pytest.raises(TransactionNotOpen):
            store.commit_transaction(dropped)
        assert table.get(b"a") == b"1"


class TestConditions:
    """`if_version` and `if_absent`."""

    def test_a_condition_that_holds_lets_the_write_pass(
        self, store: Store, table: Table, begin: Begin
    ) -> None:
        """Against what the transaction sees, its own writes included."""
        version = table.put(b"k", b"1")
        txn = begin()
        own = table.put(b"k", b"2", txn=txn, if_version=version)
        table.put(b"k", b"3", txn=txn, if_version=own)
        table.put(b"new", b"1", txn=txn, if_absent=True)
        table.delete(b"k", txn=txn, if_version=own)
        table.put(b"k", b"4", txn=txn, if_absent=True)
        store.commit_transaction(txn)
        assert (table.get(b"k"), table.get(b"new")) == (b"4", b"1")

    def test_a_condition_that_fails_leaves_the_transaction_usable(
        self, store: Store, table: Table, begin: Begin
    ) -> None:
        """And writes nothing."""
        version = table.put(b"k", b"1")
        txn = begin()
        for wanted in ({"if_absent": True}, {"if_version": version + 1}, {"if_version": 0}):
            with pytest.raises(ConditionFailed):
                table.put(b"k", b"2", txn=txn, **wanted)
        with pytest.raises(ConditionFailed):
            table.delete(b"gone", txn=txn, if_version=5)
        table.put(b"other", b"1", txn=txn)
        store.commit_transaction(txn)
        assert (table.get(b"k"), table.get(b"other")) == (b"1", b"1")

    def test_a_condition_that_fails_counts_as_a_read(self, store: Store, table: Table, begin: Begin) -> None:
        """An older writer cannot make it true afterwards."""
        old, txn = store.begin_transaction(), begin()
        with pytest.raises(ConditionFailed):
            table.put(b"k", b"x", txn=txn, if_version=5)
        with pytest.raises(WriteTooOld):
            table.put(b"k", b"v", txn=old)

    def test_without_a_transaction_it_is_one_of_its_own(self, table: Table) -> None:
        """Compare and set, in one durable commit."""
        version = table.put(b"k", b"1", if_absent=True)
        with pytest.raises(ConditionFailed):
            table.put(b"k", b"2", if_absent=True)
        second = table.put(b"k", b"2", if_version=version)
        with pytest.raises(ConditionFailed):
            table.delete(b"k", if_version=version)
        table.delete(b"k", if_version=second)
        assert table.get(b"k") is None


READS: dict[str, Callable[[Store, Table], object]] = {
    "get": lambda _, table: table.get(b"k"),
    "get of a deleted key": lambda _, table: table.get(b"gone"),
    "get with a check mode": lambda _, table: table.get(b"k", check=CheckMode.NONE),
    "get at a version": lambda store, table: table.get(b"k", at=store.connection.clock.wall_ns()),
    "get, read-committed": lambda store, table: table.get(
        b"k", txn=store.transaction(isolation=TransactionIsolation.READ_COMMITTED)
    ),
    "get, serializable": lambda store, table: table.get(b"k", txn=store.transaction()),
    "get_row": lambda _, table: table.get_row(b"k"),
    "get_row at a version": lambda store, table: table.get_row(b"k", at=store.connection.clock.wall_ns()),
    "scan": lambda _, table: list(table.scan()),
    "scan, serializable": lambda store, table: list(table.scan(txn=store.transaction())),
    "split": lambda _, table: table.split(2),
    "versions": lambda _, table: table.versions(b"k"),
    "intents": lambda _, table: table.intents(),
    "stats": lambda _, table: table.stats(),
}


class TestDeletedTable:
    """Through a handle that was opened before."""

    @pytest.fixture(params=["", "created again"])
    def deleted(self, request: pytest.FixtureRequest, store: Store, table: Table) -> Iterator[Table]:
        """A deleted table whose rows are all still stored, as the purge was killed after its first step."""
        for value in (b"1", b"2"):
            table.put(b"k", value)
        table.put(b"gone", b"1")
        table.delete(b"gone")
        assert (table.get(b"k"), table.get(b"gone")) == (b"2", None)

        def interrupt() -> None:
            raise KeyboardInterrupt

        faults.arm("table.between_purge_steps", interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                store.admin.tables.delete_table("accounts")
        finally:
            faults.disarm()
        if request.param:
            store.create_table("accounts")
        yield table
        with store.connection.view() as view:
            assert view.count(ROWS) == 2, "the rows are there to be read"

    @pytest.mark.parametrize("read", READS.values(), ids=READS)
    def test_it_has_nothing_to_read(
        self, store: Store, deleted: Table, read: Callable[[Store, Table], object]
    ) -> None:
        """Every read is refused from the deletion on, however many steps of the purge are to come."""
        with pytest.raises(TableNotFound):
            read(store, deleted)

    def test_a_split_ends_with_it(self, store: Store, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
        """A table that is deleted between two views of a walk through all keys."""
        table.import_rows((b"%d" % number, b"") for number in range(6))
        monkeypatch.setattr(report, "SPLIT_KEYS", 2)

        class Views:
            """Deletes the table before the third view."""

            left = 2

            def view(self) -> AbstractContextManager[ReadView]:
                if not self.left:
                    store.admin.tables.delete_table("accounts")
                self.left -= 1
                return store.connection.view()

            clock, environment = store.connection.clock, store.connection.environment

        with store.connection.view() as view:
            entry = catalogue.get(view, "accounts")
        with pytest.raises(TableNotFound):
            report.split(cast("Connection", Views()), entry, 3, KeyRange(b"", None, reverse=False))


class TestCreatedByTheFirstWrite:
    """`store.table(name, create=True)` where there is no such table."""

    def test_the_commit_of_the_first_write_creates_it(self, store: Store) -> None:
        """One store transaction; until then there is nothing to read."""
        table = store.table("new", create=True)
        for read in (lambda: table.get(b"k"), lambda: table.get_row(b"k"), table.scan, table.stats):
            with pytest.raises(TableNotFound, match="there is no table new"):
                read()
        before = store.reports.store_info().commits
        version = table.put(b"k", b"v")
        assert store.reports.store_info().commits - before <= 2, "a reserve of timestamps may come first"
        assert (table.get(b"k"), table.name) == (b"v", "new")
        assert [row.key for row in table.scan()] == [b"k"]
        assert table.put(b"k", b"w", if_version=version) > version

    @pytest.mark.parametrize("is_attached", [True, False])
    def test_an_aborted_transaction_leaves_no_table(self, store: Store, is_attached: bool) -> None:
        """Nor does a row that is refused, or a transaction that ended before."""
        table = store.table("new", create=True)
        with pytest.raises(InvalidValue):
            table.import_rows([(b"k", b"v"), (b"", b"v")])
        given_up = store.transaction()
        table.put(b"k", b"v", txn=given_up)
        given_up.abort()
        ended = store.transaction() if is_attached else store.begin_transaction()
        store.commit_transaction(ended)
        with pytest.raises(TransactionNotOpen):
            table.put(b"k", b"v", txn=ended)
        assert store.tables() == []

    def test_a_doomed_commit_leaves_no_table(self, store: Store, table: Table) -> None:
        """The doom over a key of a second table undoes the creation."""
        table.put(b"k", b"1", txn=store.begin_transaction(priority="highest"))
        new = store.table("new", create=True)
        txn = store.transaction()
        new.put(b"k", b"v", txn=txn)
        table.put(b"k", b"2", txn=txn)
        with pytest.raises(LostConflict):
            txn.commit()
        assert store.tables() == [table.name]
        new.put(b"k", b"v")
        assert new.get(b"k") == b"v"

    def test_two_handles_and_many_batches_are_one_table(self, store: Store) -> None:
        """The name counts as long as the writes are buffered."""
        one, two = (store.table("new", create=True) for _ in range(2))
        pairs = [(b"%05d" % number, b"v") for number in range(2 * BUFFER_KEYS_MAX + 1)]
        with store.transaction() as txn:
            one.import_rows(pairs, txn=txn)
            two.put(b"last", b"v", txn=txn)
        assert sum(1 for _ in one.scan()) == len(pairs) + 1
        assert one.table_id == two.table_id == store.table("new").table_id

    def test_key_put_through_two_handles_is_one_row(self, store: Store) -> None:
        """With the later value, and counted once."""
        one, two = (store.table("new", create=True) for _ in range(2))
        with store.transaction() as txn:
            one.put(b"k", b"first", txn=txn)
            two.put(b"k", b"second", txn=txn)
        assert [(row.key, row.value) for row in one.scan()] == [(b"k", b"second")]
        assert one.stats().counts.rows == 1
        assert store.maintenance.verify_store(full=True) == []


def test_a_range_is_cut_into_parts_as_long_as_those_of_the_table(store: Store) -> None:
    """Cuts lie within the range; a range that is shorter than a part has none."""
    store.create_table("cut")
    table = store.table("cut")
    table.import_rows((b"%03d" % number, b"") for number in range(100))
    assert table.split(10, start=b"020", end=b"050") == [b"030", b"040"]
    assert table.split(10, start=b"095") == []
    assert table.split(4, start=b"020", end=b"010") == []
    assert table.split(4) == [b"025", b"050", b"075"]
