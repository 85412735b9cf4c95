"""Serializable reads of an attached transaction, in a real store."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from storage import Store, Table, Transaction, TxnID
from storage.disk.lmdb.read_cache_layout import (
    ISSUED_AT,
    LAYOUT_AT,
    LOG_BYTES_MAX,
    SLOT_BITS_MIN,
    SLOT_BYTES,
    SLOTS_FROM,
)
from storage.disk.view import ReadView
from storage.errors import (
    LostConflict,
    TransactionNotOpen,
    WriteTooOld,
)  # fmt: skip
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.client.serializable_steps import Begin, put_and_commit


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

    @pytest.mark.parametrize("is_last", [False, True])
    def test_an_unbounded_range_is_within_no_bounded_one(
        self, store: Store, table: Table, begin: Begin, is_last: bool
    ) -> None:
        """Read before or after a bounded range of a later transaction, it goes on refusing keys beyond that range."""
        old, earlier, later = begin(), store.begin_transaction(), store.begin_transaction()
        bounds: list[tuple[TxnID, dict[str, bytes]]] = [
            (earlier, {"start": b"m"}),
            (later, {"start": b"m", "end": b"n"}),
        ]
        for reader, bound in bounds[::-1] if is_last else bounds:
            assert scan(table, reader, **bound) == []
        with pytest.raises(WriteTooOld) as raised:
            put_and_commit(store, table, old, b"x", b"v")
        assert raised.value.details["winner"] == str(earlier)

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

    @pytest.mark.parametrize("reads", ["transfers", "scans", "scans of the same table"])
    def test_an_import_beside_reads_of_other_keys_is_committed(
        self, store: Store, table: Table, reads: str
    ) -> None:
        """Many more reads than an import of 30,000 rows meets, each by a later transaction."""
        store.create_table("other")
        other = store.table("other")
        beside = table if "same" in reads else other

        def read(number: int) -> None:
            with store.transaction() as txn:
                if reads == "transfers":
                    for key in (b"%d" % number, b"%d" % (number + 1)):
                        other.put(key, other.get(key, txn=txn) or b"", txn=txn)
                else:
                    assert scan(beside, txn, start=b"a%05d" % number, end=b"a%05d" % (number + 1)) == []

        def rows() -> Iterator[tuple[bytes, bytes]]:
            for number in range(30_000):
                if number % 60 == 0:
                    read(number)
                yield b"row%06d" % number, b"v"

        with store.transaction() as txn:
            assert table.import_rows(rows(), txn=txn) == 30_000
        assert len(list(table.scan())) == 30_000

    def test_a_write_under_forgotten_reads_is_told_that_its_key_may_have_been_read(
        self, store: Store, path: str, table: Table
    ) -> None:
        """Not that it was: no transaction is named, in the error, the record and the history."""
        table.put(b"k", b"v")
        old = store.begin_transaction()
        with store.transaction() as txn:
            table.get(b"k", txn=txn)
        os.unlink(os.path.join(path, "reads.cache"))
        with pytest.raises(
            WriteTooOld, match="key k of table accounts may have been read by a later"
        ) as raised:
            table.put(b"k", b"w", txn=old)
        assert raised.value.details["winner"] is None and raised.value.details["winnerVersion"] is None
        conflict = store.reports.show_transaction(old).conflict
        assert conflict is not None and (conflict.kind, conflict.winner_version_ns) == ("read", None)
        assert store.reports.list_conflicts()[0].winner_version_ns is None

    def test_ranges_forgotten_by_the_file_alone_refuse_older_writes(self, store: Store, table: Table) -> None:
        """By the watermark of the file: the store's own stays where it was."""
        table.put(b"k", b"v")
        old = store.begin_transaction()
        with store.transaction() as txn:
            assert scan(table, txn) == [(b"k", b"v")]
            cache, count = store.connection.environment.read_cache, LOG_BYTES_MAX // 30

            def read_many_tables(_view: ReadView, _wall_ns: int) -> None:
                for number in range(1000, 1000 + count):
                    cache.record_range(number, b"", None, txn.timestamp, 0)

            with store.connection.recorded_view(read_many_tables) as view:
                assert view.superblock.read_watermark < txn.timestamp
        with pytest.raises(WriteTooOld, match="may have been read"):
            table.put(b"other", b"w", txn=old)

    @pytest.mark.parametrize("part", ["issued", "layout", "slots", "ranges", "all"])
    def test_a_damaged_file_is_made_anew_behind_a_watermark(
        self, store: Store, path: str, table: Table, begin: Begin, part: str
    ) -> None:
        """Whatever is wrong: older writes are refused, new ones and reads work, and no timestamp comes from there."""
        old, reader = begin(), store.begin_transaction()
        assert table.get(b"k", txn=reader) is None
        assert scan(table, reader, start=b"m") == []
        before = store.transaction().timestamp
        slots_end = SLOTS_FROM + (SLOT_BYTES << SLOT_BITS_MIN)
        low, high = {
            "issued": (ISSUED_AT, ISSUED_AT + 8), "layout": (LAYOUT_AT, LAYOUT_AT + 8),
            "slots": (SLOTS_FROM, slots_end), "ranges": (slots_end, slots_end + 16), "all": (0, slots_end),
        }[part]  # fmt: skip
        with open(os.path.join(path, "reads.cache"), "r+b") as file:
            file.seek(low)
            file.write(b"\x7f" * (high - low))
        for key in (b"k", b"x"):
            with pytest.raises((WriteTooOld, TransactionNotOpen)):
                put_and_commit(store, table, old, key, b"v")
        after = store.transaction()
        assert before < after.timestamp < before + 3600 * 1_000_000_000
        assert (table.get(b"k", txn=after), scan(table, after)) == (None, [])
        assert table.put(b"k", b"w")
        assert table.get(b"k") == b"w"

    def test_a_reader_that_meets_damage_reads_on(self, store: Store, path: str, table: Table) -> None:
        """In the same transaction: the file is made anew first."""
        table.put(b"k", b"v")
        with store.transaction() as txn:
            assert table.get(b"a", txn=txn) is None
            with open(os.path.join(path, "reads.cache"), "r+b") as file:
                file.seek(SLOTS_FROM)
                file.write(b"\xff" * (SLOT_BYTES << SLOT_BITS_MIN))
            assert table.get(b"k", txn=txn) == b"v"
            assert scan(table, txn) == [(b"k", b"v")]

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
