"""Serial order: `storage/verify/serial_order.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store
from storage.disk.codec import key1
from storage.disk.schema import ROWS
from storage.disk.view import WriteBatch
from storage.table import conflict as conflicts, row as rows
from storage.table.conflict import DoomCause
from storage.table.visibility import StoredRow, Version
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from storage.verify import run
from tests.row_json import row_json
from tests.storage.damage import broken_by

TABLE = 1


FIRST, SECOND, OPEN, LOSER, REFUSED = 1, 2, 3, 4, 5


def alter(store: Store, txn: int, change: Callable[[TransactionRecord], object]) -> set[int | None]:
    """Break the record of a transaction."""

    def alter_record(batch: WriteBatch) -> None:
        record = records.get(batch, txn)
        change(record)
        records.save(batch, record)

    return broken_by(store, alter_record)


def test_an_update_that_was_lost_is_found(contended: Store) -> None:
    """The older version of a key was committed after the younger one: its writer never saw that, nor was refused."""

    def commit_last(batch: WriteBatch) -> None:
        first = records.get(batch, FIRST)
        first.ended_timestamp = batch.timestamp()
        records.save(batch, first)

    assert broken_by(contended, commit_last) == {12}


def test_it_is_found_in_a_commit_that_is_not_finalised(contended: Store) -> None:
    """An intent of a committed transaction is the newest version."""
    table, txn = contended.table("accounts"), contended.begin_transaction()
    table.import_rows(((b"~%03d" % n, b"") for n in range(100)), txn=txn)
    table.put(b"a", b"3", txn=txn)
    contended.commit_transaction(txn)
    assert row_json(table.stats())["intents"] == 102
    assert contended.maintenance.verify_store() == []

    def commit_last(batch: WriteBatch) -> None:
        second = records.get(batch, SECOND)
        second.ended_timestamp = batch.timestamp()
        records.save(batch, second)

    assert broken_by(contended, commit_last) == {12}


def test_a_timestamp_of_two_transactions_is_found(contended: Store) -> None:
    """Also where the record of one of them is not kept any more."""

    def change(batch: WriteBatch) -> None:
        version = records.get(batch, SECOND).timestamp
        batch.put(ROWS, key1(TABLE) + b"c", rows.encode(StoredRow(Version(version, 99, b"x"), None)))

    assert broken_by(contended, change) == {12, 18}


def test_a_transaction_with_two_timestamps_is_found(contended: Store) -> None:
    """Nothing that it read at the one can be true at the other."""

    def change(batch: WriteBatch) -> None:
        for number, key in enumerate((b"c", b"a")):
            version = Version(records.get(batch, SECOND).timestamp + number, 99, b"x")
            batch.put(ROWS, key1(TABLE) + key, rows.encode(StoredRow(version, None)))

    assert broken_by(contended, change) == {12, 18}


def test_a_transaction_that_was_decided_before_it_began_is_found(contended: Store) -> None:
    """Its end has a timestamp that was issued, but too early."""
    assert 12 in alter(contended, LOSER, lambda record: setattr(record, "ended_timestamp", 1))


@pytest.mark.parametrize("consumed", [1, 1 << 62])
def test_having_consumed_the_future_is_found(contended: Store, consumed: int) -> None:
    """Who used tables saw less in them than the message told of (the order rule); an older message is well."""
    found = alter(contended, SECOND, lambda record: setattr(record, "consumed", consumed))
    assert found == ({12} if consumed > 1 else set())


def test_a_read_committed_transaction_that_wrote_is_found(contended: Store) -> None:
    """It was judged by no rule."""
    assert alter(contended, SECOND, lambda record: setattr(record, "isolation", "READ_COMMITTED")) == {12}


@pytest.mark.parametrize("kind", [conflicts.READ, conflicts.VERSION])
def test_a_refusal_in_favour_of_an_older_transaction_is_found(contended: Store, kind: str) -> None:
    """A write is refused for what is younger only."""

    def change(batch: WriteBatch) -> None:
        winner = records.get(batch, FIRST)
        lost = DoomCause(kind, "accounts", b"a", FIRST, winner.timestamp)
        conflicts.note(batch, records.get(batch, REFUSED), lost)

    assert broken_by(contended, change) == {12}


def test_a_refusal_for_a_version_that_nobody_committed_is_found(contended: Store) -> None:
    """Its writer is aborted."""

    def change(batch: WriteBatch) -> None:
        winner = records.get(batch, REFUSED)
        lost = DoomCause(conflicts.VERSION, "accounts", b"a", REFUSED, winner.timestamp)
        conflicts.note(batch, records.get(batch, LOSER), lost)

    assert broken_by(contended, change) == {12}


def test_a_conflict_that_names_another_timestamp_is_found(contended: Store) -> None:
    """The winner is not who it is said to be."""

    def change(batch: WriteBatch) -> None:
        conflicts.note(batch, records.get(batch, LOSER), DoomCause(conflicts.PUSH, "accounts", b"b", OPEN, 7))

    assert broken_by(contended, change) == {12}


def test_a_watermark_that_was_never_issued_is_found(contended: Store) -> None:
    """It would refuse whoever begins."""

    def change(batch: WriteBatch) -> None:
        batch.superblock.read_watermark = batch.superblock.last_timestamp + 1
        batch.superblock.changes += 1

    assert broken_by(contended, change) == {12}


@pytest.mark.parametrize("full", [True, False])
def test_the_rules_that_were_checked_are_told(contended: Store, full: bool) -> None:
    """13 only where there is a table to read, and quickly none of tables."""
    numbers: list[int] = []
    assert contended.maintenance.verify_store(full=full, checked=numbers.append) == []
    assert numbers == (sorted({*run.FULL, 13}) if full else list(run.QUICK))
