"""`store verify` finds what is wrong with tables: each test breaks one thing behind the engine's back."""

from __future__ import annotations

import pytest

from storage import Store, Table
from storage.disk.codec import key1, key2, pack, part_key
from storage.disk.schema import (
    CHANGES,
    PART_TABLE,
    ROWS,
    TABLE_PURGES,
    TABLES,
    TXN_KEYS,
    TXN_PARTS,
    TXNS,
    VERSIONS,
)
from storage.disk.view import WriteBatch
from storage.table import conflict as conflicts, row as rows, state
from storage.table.state import TableState
from storage.table.visibility import StoredRow, Version
from storage.txn import record as records
from tests.storage.damage import broken_by

TABLE = 1
FIRST, SECOND, OPEN, ABORTED = 1, 2, 3, 4


@pytest.fixture
def written(store: Store, table: Table) -> Store:
    """A sound store: `a` written twice, `b` with an intent of an open transaction, `d` deleted; one aborted."""
    txn = store.begin_transaction()
    assert txn.least == OPEN
    table.put(b"b", b"3", txn=txn)
    aborted = store.begin_transaction()
    table.put(b"c", b"4", txn=aborted)
    store.admin.transactions.abort_transaction(aborted)
    table.delete(b"d")
    assert store.maintenance.verify_store(full=True) == []
    return store


def row_of(batch: WriteBatch, key: bytes) -> StoredRow:
    stored = key1(TABLE) + key
    payload = batch.get(ROWS, stored)
    assert payload is not None
    return rows.decode(stored, payload)


def put_row(batch: WriteBatch, key: bytes, row: StoredRow) -> None:
    batch.put(ROWS, key1(TABLE) + key, rows.encode(row))


@pytest.mark.parametrize("counter", TableState.__slots__)
def test_a_counter_that_is_off_is_found(written: Store, counter: str) -> None:
    """Every one of them is recounted (invariant 23)."""

    def change(batch: WriteBatch) -> None:
        head = state.find(batch, TABLE)
        assert head is not None
        setattr(head, counter, getattr(head, counter) + 1)
        head.rows += counter == "keys"

    assert broken_by(written, change) == {23}


def test_an_intent_that_is_older_than_a_version_is_found(written: Store) -> None:
    """Invariant 18."""

    def change(batch: WriteBatch) -> None:
        payload = bytearray(rows.encode(StoredRow(Version(9, FIRST, b"1"), Version(10, OPEN, b"3"))))
        payload[1:9] = (11).to_bytes(8, "big")
        batch.put(ROWS, key1(TABLE) + b"b", bytes(payload))

    assert 18 in broken_by(written, change)


def test_an_intent_found_one_way_only_is_found(written: Store) -> None:
    """Without its key in the transaction's list, or a key in the list without it."""
    assert 18 in broken_by(written, lambda batch: batch.delete(TXN_KEYS, key2(OPEN, TABLE) + b"b"))
    assert 18 in broken_by(written, lambda batch: batch.put(TXN_KEYS, key2(OPEN, TABLE) + b"x", b""))


def test_an_intent_of_nobody_is_found(written: Store) -> None:
    """Its transaction has no record."""
    assert 18 in broken_by(written, lambda batch: batch.delete(TXNS, key1(OPEN)))


def test_an_intent_at_another_timestamp_is_found(written: Store) -> None:
    """An intent has the timestamp of its transaction."""

    def change(batch: WriteBatch) -> None:
        intent = row_of(batch, b"b").intent
        assert intent is not None
        put_row(batch, b"b", StoredRow(None, Version(intent.version + 1, OPEN, b"3")))

    assert broken_by(written, change) == {18}


@pytest.mark.parametrize("txn", [OPEN, ABORTED])
def test_a_version_of_a_transaction_that_did_not_commit_is_found(written: Store, txn: int) -> None:
    """No uncommitted value may be returned (invariant 14)."""

    def change(batch: WriteBatch) -> None:
        put_row(batch, b"a", StoredRow(Version(records.get(batch, txn).timestamp, txn, b"x"), None))

    assert broken_by(written, change) == {14, 18}


def test_a_version_that_was_never_issued_is_found(written: Store) -> None:
    """Timestamps come from the oracle (invariant 16)."""

    def change(batch: WriteBatch) -> None:
        put_row(batch, b"a", StoredRow(Version(1 << 62, 99, b"x"), None))

    assert broken_by(written, change) == {16, 18}


def test_a_superseded_version_that_is_not_older_is_found(written: Store) -> None:
    """One key's versions are in order."""

    def change(batch: WriteBatch) -> None:
        committed = row_of(batch, b"a").committed
        assert committed is not None
        key = rows.old_key(TABLE, b"a", committed.version)
        batch.put(VERSIONS, key, rows.encode_old(committed))

    assert {18, 23} == broken_by(written, change)


def test_a_version_that_the_changes_lack_is_found(written: Store) -> None:
    """And a change without a version, and changes kept from a version on that was never issued."""

    def entry(batch: WriteBatch) -> bytes:
        return next(batch.keys(CHANGES, key1(TABLE)))

    assert broken_by(written, lambda batch: batch.delete(CHANGES, entry(batch))) == {18}
    assert broken_by(written, lambda batch: batch.put(CHANGES, entry(batch) + b"x", b"")) == {18}
    assert broken_by(written, lambda batch: batch.put(CHANGES, key1(TABLE), key1(1 << 62))) == {18}


def test_a_count_of_keys_that_is_off_is_found(written: Store) -> None:
    """What a transaction wrote is counted with it; and that part cannot be missing."""
    part = part_key(OPEN, PART_TABLE, TABLE)
    assert broken_by(written, lambda batch: batch.put(TXN_PARTS, part, pack([2]))) == {23}
    assert broken_by(written, lambda batch: batch.delete(TXN_PARTS, part)) == {6}


def test_rows_of_no_table_are_found(written: Store) -> None:
    """Neither of one that is there nor of one that is being removed."""
    assert 6 in broken_by(written, lambda batch: batch.delete(TABLES, b"accounts"))


def test_a_table_that_is_there_and_being_removed_is_found(written: Store) -> None:
    """A name is taken away before its rows are."""
    assert broken_by(written, lambda batch: batch.put(TABLE_PURGES, key1(TABLE), b"")) == {6}


def test_a_table_without_a_head_is_found(written: Store) -> None:
    """It could not be counted in."""
    from storage.disk.schema import HEADS

    assert broken_by(written, lambda batch: batch.delete(HEADS, state.key_of(TABLE))) == {23}


def test_a_loser_that_is_not_aborted_is_found(written: Store) -> None:
    """Who lost a conflict never commits (invariant 17); it stays open here behind the engine's back."""

    def change(batch: WriteBatch) -> None:
        record = records.get(batch, OPEN)
        winner = records.get(batch, FIRST)
        lost = conflicts.DoomCause(conflicts.PUSH, "accounts", b"b", FIRST, winner.timestamp)
        conflicts.note(batch, record, lost)

    assert broken_by(written, change) == {17}
