"""Serializable transactions: snapshot reads, the read cache, intents, conditions (semantics section 7)."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from storage import Store, Table, Transaction, TxnID
from storage.errors import (
    ConditionFailed,
    LostConflict,
    TransactionNotOpen,
    TransactionTimedOut,
    WriteTooOld,
)  # fmt: skip
from storage.process.clock import ManualClock
from tests.row_json import row_json

Begin = Callable[[], TxnID | Transaction]


@pytest.fixture(params=["attached", "detached"])
def begin(request: pytest.FixtureRequest, store: Store, table: Table) -> Begin:
    """Begins a transaction of either kind."""
    return store.transaction if request.param == "attached" else store.begin_transaction


def put_and_commit(
    store: Store, table: Table, txn: TxnID | Transaction, key: bytes, value: bytes | None
) -> None:
    """An attached one is refused at its commit, a detached one at the put."""
    if value is None:
        table.delete(key, txn=txn)
    else:
        table.put(key, value, txn=txn)
    store.commit_transaction(txn)


def scan(table: Table, txn: TxnID | Transaction, **bounds: object) -> list[tuple[bytes, bytes]]:
    return [(row.key, row.value) for row in table.scan(txn=txn, **bounds)]  # type: ignore[arg-type]


class TestReading:
    """The snapshot at the transaction's timestamp plus its own writes."""

    def test_it_reads_what_was_committed_before_it_began(self, table: Table, begin: Begin) -> None:
        """Later commits do not show, also not in a scan, and a later deletion neither."""
        table.put(b"a", b"1")
        table.put(b"b", b"1")
        txn = begin()
        table.put(b"a", b"2")
        table.delete(b"b")
        table.put(b"c", b"1")
        assert (table.get(b"a", txn=txn), table.get(b"c", txn=txn)) == (b"1", None)
        assert scan(table, txn) == [(b"a", b"1"), (b"b", b"1")]
        assert scan(table, txn, reverse=True) == [(b"b", b"1"), (b"a", b"1")]

    def test_it_reads_its_own_writes(self, table: Table, begin: Begin) -> None:
        """Puts and deletions, by key and by range, both ways, with a limit."""
        for key in (b"a", b"b", b"c"):
            table.put(key, b"old")
        txn = begin()
        table.put(b"bb", b"new", txn=txn)
        table.delete(b"b", txn=txn)
        table.put(b"c", b"new", txn=txn)
        table.put(b"c", b"newer", txn=txn)
        expected = [(b"a", b"old"), (b"bb", b"new"), (b"c", b"newer")]
        assert scan(table, txn) == expected
        assert scan(table, txn, reverse=True) == expected[::-1]
        assert scan(table, txn, limit=2) == expected[:2]
        assert scan(table, txn, prefix=b"b") == [(b"bb", b"new")]
        assert (table.get(b"b", txn=txn), table.get(b"c", txn=txn)) == (None, b"newer")
        assert table.get(b"c") == b"old"

    def test_own_writes_show_in_every_page_of_a_long_scan(self, table: Table, begin: Begin) -> None:
        """Merged where they belong, once each."""
        table.import_rows((b"%05d" % n, b"old") for n in range(0, 5000, 2))
        txn = begin()
        for n in range(1, 5000, 500):
            table.put(b"%05d" % n, b"new", txn=txn)
        table.delete(b"00000", txn=txn)
        rows = scan(table, txn)
        assert [key for key, _ in rows] == sorted(
            {b"%05d" % n for n in range(2, 5000, 2)} | {b"%05d" % n for n in range(1, 5000, 500)}
        )
        assert scan(table, txn, reverse=True) == rows[::-1]

    def test_an_older_reader_reads_the_version_below_an_intent(self, store: Store, table: Table) -> None:
        """It neither pushes nor is pushed."""
        table.put(b"k", b"before")
        reader, writer = store.begin_transaction(), store.begin_transaction()
        table.put(b"k", b"after", txn=writer)
        assert table.get(b"k", txn=reader) == b"before"
        assert row_json(store.reports.show_transaction(writer))["state"] == "OPEN"
        assert row_json(store.reports.list_conflicts()) == []

    def test_a_newer_reader_pushes_an_older_writer(self, store: Store, table: Table) -> None:
        """The writer loses and learns it at its next operation, with the winner and the key."""
        table.put(b"k", b"before")
        writer, reader = store.begin_transaction(), store.begin_transaction()
        table.put(b"k", b"after", txn=writer)
        assert table.get(b"k", txn=reader) == b"before"
        for action in (
            lambda: table.get(b"k", txn=writer),
            lambda: table.put(b"other", b"", txn=writer),
            lambda: store.commit_transaction(writer),
        ):
            with pytest.raises(LostConflict) as raised:
                action()
            assert raised.value.details["winner"] == str(reader)
            assert raised.value.details["key"] == "k"
        store.commit_transaction(reader)

    def test_a_writer_of_higher_priority_survives_a_newer_reader(self, store: Store, table: Table) -> None:
        """The reader is aborted at once, and told."""
        writer, reader = store.begin_transaction(priority="high"), store.begin_transaction()
        table.put(b"k", b"v", txn=writer)
        with pytest.raises(LostConflict) as raised:
            table.get(b"k", txn=reader)
        assert raised.value.details["winner"] == str(writer)
        assert row_json(store.reports.show_transaction(reader))["reason"] == "lost-conflict"
        store.commit_transaction(writer)
        assert table.get(b"k") == b"v"

    def test_a_scan_pushes_every_intent_in_its_way(self, store: Store, table: Table) -> None:
        """All of them lose to the newer scan."""
        writers = [store.begin_transaction() for _ in range(3)]
        for number, writer in enumerate(writers):
            table.put(b"k%d" % number, b"v", txn=writer)
        assert scan(table, store.begin_transaction()) == []
        assert {row_json(store.reports.show_transaction(writer))["state"] for writer in writers} == {
            "ABORTED"
        }


class TestReadCache:
    """A write is refused if a later transaction has read its key, or a range over it."""

    def test_a_key_read_by_a_later_transaction_is_not_written(
        self, store: Store, table: Table, begin: Begin
    ) -> None:
        """Whether it was there or not, and also when the reader has long committed."""
        old, reader = begin(), store.begin_transaction()
        assert table.get(b"k", txn=reader) is None
        store.commit_transaction(reader)
        with pytest.raises(WriteTooOld) as raised:
            put_and_commit(store, table, old, b"k", b"v")
        assert raised.value.details["key"] == "k"
        with pytest.raises(TransactionNotOpen):
            store.commit_transaction(old)
        assert table.get(b"k") is None

    def test_a_phantom_is_refused(self, store: Store, table: Table, begin: Begin) -> None:
        """Nothing comes into a range that a later transaction has read, nor goes from it."""
        table.put(b"m5", b"v")
        for attempt in (b"m1", b"m5", b"m9"):
            old, reader = begin(), store.begin_transaction()
            assert scan(table, reader, prefix=b"m") == [(b"m5", b"v")]
            with pytest.raises(WriteTooOld):
                put_and_commit(store, table, old, attempt, None)

    def test_keys_outside_the_range_are_free(self, store: Store, table: Table, begin: Begin) -> None:
        """Just before its start, and its end itself."""
        old, reader = begin(), store.begin_transaction()
        assert scan(table, reader, start=b"b", end=b"d") == []
        table.put(b"az", b"v", txn=old)
        table.put(b"d", b"v", txn=old)
        store.commit_transaction(old)
        assert table.get(b"d") == b"v"

    def test_a_read_by_an_earlier_transaction_refuses_nothing(
        self, store: Store, table: Table, begin: Begin
    ) -> None:
        """The later writer comes after it."""
        reader, writer = store.begin_transaction(), begin()
        assert table.get(b"k", txn=reader) is None
        table.put(b"k", b"v", txn=writer)
        store.commit_transaction(writer)
        assert table.get(b"k", txn=reader) is None

    def test_its_own_reads_refuse_nothing(self, store: Store, table: Table, begin: Begin) -> None:
        """Read, then write: the usual thing."""
        txn = begin()
        assert table.get(b"k", txn=txn) is None
        assert scan(table, txn) == []
        table.put(b"k", b"v", txn=txn)
        store.commit_transaction(txn)
        assert table.get(b"k") == b"v"

    def test_write_skew_is_refused(self, store: Store, table: Table, begin: Begin) -> None:
        """Each reads what the other writes: one of the two does not commit."""
        first, second = begin(), begin()
        for txn in (first, second):
            assert (table.get(b"x", txn=txn), table.get(b"y", txn=txn)) == (None, None)
        failures = 0
        for txn, key in ((second, b"y"), (first, b"x")):
            try:
                table.put(key, b"v", txn=txn)
                store.commit_transaction(txn)
            except WriteTooOld:
                failures += 1
        assert failures == 1

    def test_a_lost_update_is_refused(self, store: Store, table: Table, begin: Begin) -> None:
        """Two read a value and write it back raised: one of them is refused."""
        table.put(b"n", b"0")
        first, second = begin(), begin()
        values = [int(table.get(b"n", txn=txn) or b"") for txn in (first, second)]
        committed = 0
        for txn, value in zip((second, first), values, strict=True):
            try:
                table.put(b"n", b"%d" % (value + 1), txn=txn)
                store.commit_transaction(txn)
                committed += 1
            except WriteTooOld:
                pass
        assert (committed, table.get(b"n")) == (1, b"1")

    def test_a_lost_file_of_reads_refuses_every_older_write(
        self, store: Store, path: str, table: Table, begin: Begin
    ) -> None:
        """What was read is forgotten with it, so all that began before is refused."""
        old, reader = begin(), store.begin_transaction()
        assert table.get(b"k", txn=reader) is None
        os.unlink(os.path.join(path, "reads.cache"))
        with pytest.raises(WriteTooOld):
            put_and_commit(store, table, old, b"other", b"v")
        table.put(b"other", b"w")
        assert table.get(b"other") == b"w"

    def test_a_reboot_forgets_reads_and_refuses_every_older_write(
        self, store: Store, table: Table, clock: ManualClock
    ) -> None:
        """A detached transaction that outlives it is refused; a new one is not, and no timestamp comes twice."""
        old, reader = store.begin_transaction(), store.begin_transaction()
        assert table.get(b"k", txn=reader) is None
        before = store.transaction().timestamp
        clock.boot, clock.boot_now_ns = b"manual-boot-0002", 5
        with pytest.raises(WriteTooOld):
            table.put(b"other", b"v", txn=old)
        after = store.transaction()
        assert after.timestamp > before
        table.put(b"other", b"v", txn=after)
        after.commit()
        assert table.get(b"other") == b"v"


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
        assert [each["value"] for each in row_json(table.versions(b"k"))] == [b"2", b"1"]
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
        assert [each["value"] for each in row_json(table.versions(b"k"))] == [b"2", b"0"]

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
