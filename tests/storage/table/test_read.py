"""Read-committed reads: the three check modes, and that they disturb nobody (invariants 13 and 14)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import CheckMode, Store, Table, Transaction, TransactionIsolation, TransactionState, TxnID
from storage.errors import (
    InvalidValue,
    ReadOnlyTransaction,
    TransactionNotOpen,
    TransactionTimedOut,
)  # fmt: skip
from storage.process.clock import ManualClock
from tests.row_json import row_json

WriteMany = Callable[[TxnID, dict[bytes, bytes]], None]
MODES = list(CheckMode)


@pytest.fixture
def unfinalized(store: Store, table: Table, write_many: WriteMany) -> TxnID:
    """`k` is b"old", and b"new" in a transaction that has committed and is not finalised."""
    table.put(b"k", b"old")
    txn = store.begin_transaction()
    write_many(txn, {b"k": b"new"})
    store.commit_transaction(txn)
    return txn


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


@pytest.mark.parametrize("check", MODES)
def test_reading_leaves_every_byte_as_it_was(
    store: Store, table: Table, unfinalized: TxnID, path: str, check: CheckMode
) -> None:
    """Beginning, reading by key and by range, and ending write nothing; no file appears or changes."""
    store.begin_transaction(timeout=1)

    def contents() -> dict[str, str]:
        files = (Path(path) / name for name in os.listdir(path) if name not in ("lock.mdb", "store.lock"))
        return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}

    before = contents()
    with store.transaction(isolation=TransactionIsolation.READ_COMMITTED, check=check) as reader:
        table.get(b"k", txn=reader)
        table.get(b"missing", txn=reader)
        list(table.scan(txn=reader))
        list(table.scan(reverse=True, check=check))
        table.get(b"k", check=check)
    assert reader.state is TransactionState.COMMITTED
    assert contents() == before


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


def test_writing_in_a_read_committed_transaction_is_refused_with_advice(store: Store, table: Table) -> None:
    """Puts, deletions, messages and acknowledgements alike; it stays usable for reading."""
    store.create_producer("t").send(b"m")
    consumer = store.subscribe("t", "s", initial_position=__import__("storage").EARLIEST)
    message = consumer.receive(timeout=0)
    readers: list[Transaction | TxnID] = [
        store.transaction(isolation="read-committed"),
        store.begin_transaction(isolation="read-committed"),
    ]
    for reader in readers:
        for action in (
            lambda txn: table.put(b"k", b"v", txn=txn),
            lambda txn: table.delete(b"k", txn=txn),
            lambda txn: table.put(b"k", b"v", txn=txn, if_absent=True),
            lambda txn: store.create_producer("t").send(b"x", txn=txn),
            lambda txn: consumer.acknowledge(message, txn=txn),
        ):
            with pytest.raises(ReadOnlyTransaction) as raised:
                action(reader)
            assert "serializable" in str(raised.value.hint)
        assert table.get(b"k", txn=reader) is None
    consumer.close()
    assert row_json(store.reports.list_transactions())[0]["messages"] == 0


def test_an_ended_or_overdue_read_committed_transaction_is_not_read_in(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """Its record is followed, and nothing is written, not even its end."""
    ended, overdue = (store.begin_transaction(isolation="read-committed", timeout=60) for _ in range(2))
    store.commit_transaction(ended)
    with pytest.raises(TransactionNotOpen):
        table.get(b"k", txn=ended)
    clock.advance(61)
    commits = row_json(store.reports.store_info())["commits"]
    with pytest.raises(TransactionTimedOut):
        table.get(b"k", txn=overdue)
    assert row_json(store.reports.store_info())["commits"] == commits
    here = store.transaction(isolation="read-committed")
    here.commit()
    with pytest.raises(TransactionNotOpen):
        table.get(b"k", txn=here)


def test_options_are_checked(store: Store, table: Table) -> None:
    """A serializable transaction has no check mode; names are taken in any spelling."""
    with pytest.raises(InvalidValue):
        store.begin_transaction(check="full")
    with pytest.raises(InvalidValue):
        store.begin_transaction(isolation="snapshot")
    with pytest.raises(InvalidValue):
        store.begin_transaction(priority="urgent")
    for name in ("READ_COMMITTED", "read-committed", "read_committed"):
        shown = row_json(
            store.reports.show_transaction(
                store.begin_transaction(isolation=name, check="FULL", priority="Lowest")
            )
        )
        assert [shown[each] for each in ("isolation", "check", "priority")] == [
            "READ_COMMITTED", "full", "lowest",
        ]  # fmt: skip
    with pytest.raises(InvalidValue):
        table.get(b"k", txn=store.begin_transaction(), check=CheckMode.FULL)


def test_a_long_scan_neither_skips_nor_repeats_while_others_write(store: Store, table: Table) -> None:
    """Each page is a view of its own; going on by key keeps the order."""
    table.import_rows((b"%05d" % n, b"") for n in range(3000))
    seen = []
    for number, row in enumerate(table.scan()):
        seen.append(row.key)
        if number % 500 == 0:
            table.put(b"%05d+" % number, b"")
            table.delete(b"%05d" % (2999 - number))
    assert seen == sorted(set(seen))
    assert {b"%05d" % n for n in range(2000, 2400)} - {
        b"%05d" % (2999 - n) for n in range(0, 3000, 500)
    } <= set(seen)
