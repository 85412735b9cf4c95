"""`store verify` finds table work that no order of transactions explains (12), and reads that change the file (13).

Each test breaks one thing behind the engine's back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import CheckMode, Store, Table
from storage.disk.codec import key1
from storage.disk.schema import ROWS
from storage.disk.view import WriteBatch
from storage.errors import LostConflict, WriteTooOld
from storage.process.clock import ManualClock
from storage.table import conflict as conflicts, row as rows
from storage.table.conflict import Conflict
from storage.table.visibility import Row, Version
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.verify import run
from storage.verify.reads import check_reads
from tests.row_json import row_json
from tests.storage.damage import broken_by

TABLE = 1
FIRST, SECOND, OPEN, LOSER, REFUSED = 1, 2, 3, 4, 5


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Store]:
    """A sound store: `a` written twice, `b` held by an open transaction; one lost a push, one was refused a write."""
    path = str(tmp_path / "store")
    Store.create(path, clock=(clock := ManualClock()))
    with Store.open(path, clock=clock) as store:
        store.create_table("accounts")
        table = store.table("accounts")
        table.put(b"a", b"1")
        table.put(b"a", b"2")
        held, loser, refused = (
            store.begin_transaction(priority="high"),
            store.begin_transaction(),
            store.begin_transaction(),
        )
        table.put(b"b", b"3", txn=held)
        with pytest.raises(LostConflict):
            table.put(b"b", b"4", txn=loser)
        table.put(b"c", b"5")
        with pytest.raises(WriteTooOld):
            table.put(b"c", b"6", txn=refused)
        assert row_json(store.maintenance.verify_store()) == []
        yield store


def alter(store: Store, txn: int, change: Callable[[TransactionRecord], object]) -> set[int | None]:
    """Break the record of a transaction."""

    def alter_record(batch: WriteBatch) -> None:
        record = records.get(batch, txn)
        change(record)
        records.save(batch, record)

    return broken_by(store, alter_record)


def test_an_update_that_was_lost_is_found(written: Store) -> None:
    """The older version of a key was committed after the younger one: its writer never saw that, nor was refused."""

    def commit_last(batch: WriteBatch) -> None:
        first = records.get(batch, FIRST)
        first.ended_timestamp = batch.timestamp()
        records.save(batch, first)

    assert broken_by(written, commit_last) == {12}


def test_it_is_found_in_a_commit_that_is_not_finalised(written: Store) -> None:
    """An intent of a committed transaction is the newest version."""
    table, txn = written.table("accounts"), written.begin_transaction()
    table.import_rows(((b"~%03d" % n, b"") for n in range(100)), txn=txn)
    table.put(b"a", b"3", txn=txn)
    written.commit_transaction(txn)
    assert row_json(table.stats())["intents"] == 102
    assert row_json(written.maintenance.verify_store()) == []

    def commit_last(batch: WriteBatch) -> None:
        second = records.get(batch, SECOND)
        second.ended_timestamp = batch.timestamp()
        records.save(batch, second)

    assert broken_by(written, commit_last) == {12}


def test_a_timestamp_of_two_transactions_is_found(written: Store) -> None:
    """Also where the record of one of them is not kept any more."""

    def change(batch: WriteBatch) -> None:
        version = records.get(batch, SECOND).timestamp
        batch.put(ROWS, key1(TABLE) + b"c", rows.encode(Row(Version(version, 99, b"x"), None)))

    assert broken_by(written, change) == {12}


def test_a_transaction_with_two_timestamps_is_found(written: Store) -> None:
    """Nothing that it read at the one can be true at the other."""

    def change(batch: WriteBatch) -> None:
        for number, key in enumerate((b"c", b"a")):
            version = Version(records.get(batch, SECOND).timestamp + number, 99, b"x")
            batch.put(ROWS, key1(TABLE) + key, rows.encode(Row(version, None)))

    assert broken_by(written, change) == {12}


def test_a_transaction_that_was_decided_before_it_began_is_found(written: Store) -> None:
    """Its end has a timestamp that was issued, but too early."""
    assert 12 in alter(written, LOSER, lambda record: setattr(record, "ended_timestamp", 1))


@pytest.mark.parametrize("consumed", [1, 1 << 62])
def test_having_consumed_the_future_is_found(written: Store, consumed: int) -> None:
    """Who used tables saw less in them than the message told of (the order rule); an older message is well."""
    found = alter(written, SECOND, lambda record: setattr(record, "consumed", consumed))
    assert found == ({12} if consumed > 1 else set())


def test_a_read_committed_transaction_that_wrote_is_found(written: Store) -> None:
    """It was judged by no rule."""
    assert alter(written, SECOND, lambda record: setattr(record, "isolation", "READ_COMMITTED")) == {12}


@pytest.mark.parametrize("kind", [conflicts.READ, conflicts.VERSION])
def test_a_refusal_in_favour_of_an_older_transaction_is_found(written: Store, kind: str) -> None:
    """A write is refused for what is younger only."""

    def change(batch: WriteBatch) -> None:
        winner = records.get(batch, FIRST)
        lost = Conflict(kind, "accounts", b"a", FIRST, winner.timestamp)
        conflicts.note(batch, records.get(batch, REFUSED), lost)

    assert broken_by(written, change) == {12}


def test_a_refusal_for_a_version_that_nobody_committed_is_found(written: Store) -> None:
    """Its writer is aborted."""

    def change(batch: WriteBatch) -> None:
        winner = records.get(batch, REFUSED)
        lost = Conflict(conflicts.VERSION, "accounts", b"a", REFUSED, winner.timestamp)
        conflicts.note(batch, records.get(batch, LOSER), lost)

    assert broken_by(written, change) == {12}


def test_a_conflict_that_names_another_timestamp_is_found(written: Store) -> None:
    """The winner is not who it is said to be."""

    def change(batch: WriteBatch) -> None:
        conflicts.note(batch, records.get(batch, LOSER), Conflict(conflicts.PUSH, "accounts", b"b", OPEN, 7))

    assert broken_by(written, change) == {12}


def test_a_watermark_that_was_never_issued_is_found(written: Store) -> None:
    """It would refuse whoever begins."""

    def change(batch: WriteBatch) -> None:
        batch.superblock.read_watermark = batch.superblock.last_timestamp + 1
        batch.superblock.changes += 1

    assert broken_by(written, change) == {12}


class _Spoiled(Table):
    """A table of which a read writes into the file."""

    spoil: Callable[[], object]

    def get(self, key: bytes, **how: object) -> bytes | None:
        """As a table's, and something else."""
        self.spoil()
        return super().get(key, **how)  # type: ignore[arg-type]


def spoiled(store: Store, spoil: Callable[[], object]) -> Callable[[str], Table]:
    """Opens tables that do this at every read."""

    def open_table(name: str) -> Table:
        table = store.table(name)
        table.__class__ = _Spoiled
        table.spoil = spoil  # type: ignore[attr-defined]
        return table

    return open_table


def reads(store: Store, open_table: Callable[[str], Table]) -> tuple[bool, list[tuple[int | None, str]]]:
    """Whether something could be told, and what was found."""
    found: list[tuple[int | None, str]] = []
    could_tell = check_reads(
        store.connection, store.tables(), open_table, lambda rule, what, _: found.append((rule, what))
    )
    return could_tell, found


def test_reads_that_change_nothing_are_well(written: Store) -> None:
    """Of a store that is open for writing, in every mode."""
    assert len(CheckMode) == 3
    assert reads(written, written.table) == (True, [])


def test_a_read_that_changes_the_file_is_found(written: Store) -> None:
    """A byte behind its end will do, though no commit is counted."""
    path = os.path.join(written.path, "data.mdb")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        assert reads(written, spoiled(written, lambda: os.write(descriptor, b"x"))) == (
            True,
            [(13, "data.mdb")],
        )
    finally:
        os.close(descriptor)


def test_where_others_commit_meanwhile_nothing_is_told(written: Store) -> None:
    """Neither that it is well nor that it is not; and 13 is not among what was checked."""
    with Store.open(written.path, clock=written.connection.clock) as other:
        commit = spoiled(written, lambda: other.table("accounts").put(b"busy", b"x"))
        assert reads(written, commit) == (False, [])
        numbers: list[int] = []
        assert run.run(written.connection, commit, checked=numbers.append) == []
    assert numbers == list(run.FULL)


@pytest.mark.parametrize("full", [True, False])
def test_the_rules_that_were_checked_are_told(written: Store, full: bool) -> None:
    """13 only where there is a table to read, and quickly none of tables."""
    numbers: list[int] = []
    assert row_json(written.maintenance.verify_store(full=full, checked=numbers.append)) == []
    assert numbers == (sorted({*run.FULL, 13}) if full else list(run.QUICK))
