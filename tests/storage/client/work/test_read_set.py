"""The read set of a transaction alone: reads at one timestamp, each protected from later writes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store, Table
from storage.client.work.handle import TransactionHandle
from storage.client.work.read_set import ReadSet, Rows
from storage.errors import WriteTooOld
from storage.table.catalogue import TableEntry
from storage.table.key_range import KeyRange
from storage.txn import record as records
from tests.row_json import row_json

NewHandle = Callable[[], TransactionHandle]
ALL = KeyRange(b"", None, False)


@pytest.fixture
def table(store: Store) -> Table:
    """The table `accounts` with four keys."""
    store.create_table("accounts")
    table = store.table("accounts")
    for key in (b"a", b"b", b"c", b"d"):
        table.put(key, b"1")
    return table


@pytest.fixture
def entry(table: Table) -> TableEntry:
    """What the catalogue has of the table."""
    return TableEntry(table.name, table.table_id, 0, {})


def as_they_are(
    _table: int, rows: Rows, _part: KeyRange, _rest: KeyRange | None, _at: tuple[int, int]
) -> Rows:
    """Merges nothing: there are no buffered writes."""
    return rows


def read_set(handle: TransactionHandle, *, marks_first: bool = False) -> ReadSet:
    return ReadSet(handle, as_they_are, marks_first=marks_first)


def is_refused(table: Table, key: bytes, older: object) -> bool:
    """Whether a write of a key by an older transaction is refused."""
    try:
        table.put(key, b"late", txn=older)  # type: ignore[arg-type]
    except WriteTooOld:
        return True
    return False


def test_a_key_is_read_at_the_timestamp(new_handle: NewHandle, table: Table, entry: TableEntry) -> None:
    """What is committed later is not seen, and the reader uses tables from then on."""
    reads = read_set(handle := new_handle())
    table.put(b"a", b"2")
    seen = reads.read_key(entry, b"a")
    assert seen is not None
    assert (seen.value, handle.uses_tables, handle.txn_id) == (b"1", True, 0)
    assert reads.read_key(entry, b"none") is None


def test_a_key_that_was_read_is_protected(
    store: Store, new_handle: NewHandle, table: Table, entry: TableEntry
) -> None:
    """An older transaction may not write it any more; any other key it may."""
    writers = [store.begin_transaction(), store.begin_transaction()]
    read_set(new_handle()).read_key(entry, b"a")
    assert [is_refused(table, key, txn) for key, txn in zip((b"a", b"b"), writers, strict=True)] == [
        True,
        False,
    ]


@pytest.mark.parametrize(("limit", "protected"), [(None, [b"a", b"b", b"c", b"cc"]), (2, [b"a", b"b"])])
def test_a_page_protects_the_part_that_was_read(
    store: Store,
    new_handle: NewHandle,
    table: Table,
    entry: TableEntry,
    limit: int | None,
    protected: list[bytes],
) -> None:
    """The whole range, or the part up to the last row where the limit is reached; keys that are missing included."""
    keys = [b"a", b"b", b"c", b"cc"]
    writers = {key: store.begin_transaction() for key in keys}
    rows, rest = read_set(new_handle()).read_page(entry, ALL, ALL, limit)
    assert ([row.key for row in rows], rest is None) == ([b"a", b"b", b"c", b"d"][:limit], limit is None)
    assert [key for key in keys if is_refused(table, key, writers[key])] == protected


def test_buffered_writes_are_counted_by_the_limit(
    new_handle: NewHandle, table: Table, entry: TableEntry
) -> None:
    """They are merged before the page is cut."""

    def without_a(_t: int, rows: Rows, _p: KeyRange, _r: KeyRange | None, _at: tuple[int, int]) -> Rows:
        return [row for row in rows if row.key != b"a"]

    rows, rest = ReadSet(new_handle(), without_a, marks_first=False).read_page(entry, ALL, ALL, 2)
    assert [row.key for row in rows] == [b"b"]
    assert rest is not None
    assert rest.start == b"b\0"


def test_an_intent_in_the_way_is_pushed(
    store: Store, new_handle: NewHandle, table: Table, entry: TableEntry
) -> None:
    """The reader then reads again, with a record of its own."""
    loser = store.begin_transaction(priority="low")
    table.put(b"a", b"9", txn=loser)
    handle = new_handle()
    seen = read_set(handle).read_key(entry, b"a")
    assert seen is not None
    assert (seen.value, row_json(store.reports.show_transaction(loser))["state"]) == (b"1", "ABORTED")
    assert handle.txn_id


@pytest.mark.parametrize("marks_first", [False, True])
def test_a_shared_transaction_says_first_that_it_uses_tables(
    store: Store, new_handle: NewHandle, table: Table, entry: TableEntry, marks_first: bool
) -> None:
    """For processes that have its number; else the next batch says so."""
    handle = new_handle()
    handle.materialise()
    read_set(handle, marks_first=marks_first).read_key(entry, b"a")
    with store.connection.view() as view:
        assert records.get(view, handle.txn_id).uses_tables is marks_first
    assert handle.is_mark_due is not marks_first
    assert table.get(b"a") == b"1"
