"""Read-committed reads: the three check modes, and that they disturb nobody (invariants 13 and 14)."""

from __future__ import annotations

import pytest

from storage import CheckMode, Store, Table, TxnID
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.read_steps import MODES, WriteMany


@pytest.mark.parametrize("check", MODES)
def test_no_mode_returns_what_is_not_committed(store: Store, table: Table, check: CheckMode) -> None:
    """Neither of an open transaction nor of an aborted one, by key or by range, begun before or after."""
    table.put(b"k", b"old")
    before = store.transaction(isolation="read-committed", check=check)
    txn = store.begin_transaction()
    table.put(b"k", b"new", txn=txn)
    table.put(b"added", b"new", txn=txn)
    after = store.transaction(isolation="read-committed", check=check)
    for _ in range(2):
        for reader in (None, before, after):
            mode = check if reader is None else None
            assert table.get(b"k", txn=reader, check=mode) == b"old"
            assert [row.value for row in table.scan(txn=reader, check=mode)] == [b"old"]
        if row_json(store.reports.show_transaction(txn))["state"] == "OPEN":
            store.admin.transactions.abort_transaction(txn)


@pytest.mark.parametrize(("check", "expected"), [("minimal", b"new"), ("full", b"new"), ("none", b"old")])
def test_a_reader_begun_after_a_commit_that_is_not_finalised(
    store: Store, table: Table, unfinalized: TxnID, check: str, expected: bytes
) -> None:
    """`none` misses it; the other two look the transaction up."""
    reader = store.transaction(isolation="read-committed", check=check)
    detached = store.begin_transaction(isolation="read-committed", check=check)
    for txn in (reader, detached):
        assert table.get(b"k", txn=txn) == expected
        assert table.get_row(b"k", txn=txn).value == expected  # type: ignore[union-attr]
        assert next(iter(table.scan(txn=txn, prefix=b"k"))).value == expected
    assert table.get(b"k", check=CheckMode[check.upper()]) == expected


@pytest.mark.parametrize(("check", "expected"), [("minimal", b"old"), ("full", b"new"), ("none", b"old")])
def test_a_reader_begun_before_a_writer_whose_commit_is_not_finalised(
    store: Store, table: Table, write_many: WriteMany, check: str, expected: bytes
) -> None:
    """`minimal` may miss commits of transactions begun after the reader; `full` never does."""
    table.put(b"k", b"old")
    reader = store.transaction(isolation="read-committed", check=check)
    detached = store.begin_transaction(isolation="read-committed", check=check)
    txn = store.begin_transaction()
    write_many(txn, {b"k": b"new"})
    store.commit_transaction(txn)
    assert table.get(b"k", txn=reader) == expected
    assert table.get(b"k", txn=detached) == expected


@pytest.mark.parametrize("check", MODES)
def test_a_finalised_commit_is_seen_at_once_whoever_began_first(
    store: Store, table: Table, check: CheckMode
) -> None:
    """Read committed is not a snapshot: the newest committed version at the moment of reading."""
    reader = store.transaction(isolation="read-committed", check=check)
    assert table.get(b"k", txn=reader) is None
    table.put(b"k", b"1")
    assert table.get(b"k", txn=reader) == b"1"
    with store.transaction() as txn:
        table.put(b"k", b"2", txn=txn)
    assert table.get(b"k", txn=reader) == b"2"
    table.delete(b"k")
    assert table.get(b"k", txn=reader) is None


def test_a_minimal_reader_sees_a_writer_that_began_before_it_without_a_commit(
    store: Store, table: Table
) -> None:
    """A transaction that kept its begin in its process has begun all the same (invariant 14)."""
    table.put(b"k", b"old")
    writer = store.transaction()
    reader = store.transaction(isolation="read-committed")
    table.put(b"k", b"new", txn=writer)
    for number in range(65):
        table.put(b"~%d" % number, b"", txn=writer)
    writer.flush()
    writer.commit()
    assert row_json(table.stats())["intents"] > 0
    assert table.get(b"k", txn=reader) == b"new"


def test_a_store_open_for_reading_only_is_read(
    store: Store, table: Table, path: str, clock: ManualClock
) -> None:
    """Tables too, in a read-committed transaction or outside any."""
    table.put(b"k", b"v")
    store.close()
    with Store.open(path, clock=clock, read_only=True) as reading:
        again = reading.table("accounts")
        with reading.transaction(isolation="read-committed") as txn:
            assert (again.get(b"k"), again.get(b"k", txn=txn)) == (b"v", b"v")


def test_readers_abort_nobody_and_are_remembered_nowhere(store: Store, table: Table) -> None:
    """An older writer writes what they have read, and commits."""
    writer = store.begin_transaction(priority="lowest")
    table.put(b"held", b"v", txn=writer)
    reader = store.transaction(isolation="read-committed")
    for check in MODES:
        assert table.get(b"k", check=check) is None
        assert list(table.scan(check=check)) == []
    assert list(table.scan(txn=reader)) == []
    table.put(b"k", b"v", txn=writer)
    store.commit_transaction(writer)
    assert [row.key for row in table.scan(txn=reader)] == [b"held", b"k"]
    assert row_json(store.reports.list_conflicts()) == []


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_of_a_page_differ_in_the_fate_of_their_intents(
    store: Store, table: Table, write_many: WriteMany, reverse: bool
) -> None:
    """Intents of one open transaction are passed over in every row, those of a committed one are seen beside them."""
    keys = [b"%02d" % number for number in range(12)]
    table.import_rows((key, b"old") for key in keys)
    committed, doomed = store.begin_transaction(), store.begin_transaction()
    write_many(committed, dict.fromkeys(keys[::3], b"new"))
    store.commit_transaction(committed)
    for key in keys[1::3]:
        table.put(key, b"never", txn=doomed)
    table.delete(keys[2], txn=doomed)
    expected = {key: b"new" if key in keys[::3] else b"old" for key in keys}
    with store.transaction() as txn:
        for limit in (None, 1, 5):
            rows = list(table.scan(end=b"20", reverse=reverse, limit=limit))
            assert [row.key for row in rows] == sorted(keys, reverse=reverse)[:limit]
            assert all(row.value == expected[row.key] for row in rows)
        seen = {row.key: row.value for row in table.scan(end=b"20", reverse=reverse, txn=txn)}
    assert seen == expected
    assert row_json(store.reports.show_transaction(doomed))["state"] == "ABORTED"
