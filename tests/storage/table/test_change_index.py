"""The index of changes: one entry a version, removed with the window, and what was removed."""

from __future__ import annotations

import pytest

from storage import Store, Table
from storage.disk.schema import CHANGES
from storage.errors import RequestTooOld, TableNotFound
from storage.process.clock import ManualClock
from tests.storage.lmdb_operations import counted
from tests.storage.records_read import records_read


def test_a_start_is_not_too_old_where_nothing_was_removed_since(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """A table that rests in a busy store: its last version stays a start, whatever the time."""
    version = table.put(b"k", b"1")
    store.create_table("busy")
    for _ in range(3):
        clock.advance(10_000)
        store.table("busy").put(b"k", b"2")
        store.maintenance.collect_garbage()
    assert list(table.changes(since=version)) == []
    with pytest.raises(RequestTooOld):
        table.changes(since=version - 1)


def test_reading_changes_costs_by_their_number(store: Store, table: Table) -> None:
    """Not by the rows of the table, nor by the versions of other tables."""
    table.import_rows((b"%05d" % number, b"x") for number in range(2000))
    version = table.put(b"00500", b"y")
    last = table.put(b"01500", b"z")
    with records_read() as read:
        found = [each.version_ns for each in table.changes(since=version - 1)]
    assert found == [version, last]
    assert read.total < 30


def test_a_write_enters_one_record_in_the_index(store: Store, table: Table) -> None:
    """The cost of the index on the way of a commit."""
    table.put(b"k", b"1")
    with store.connection.view() as view:
        before = view.count(CHANGES)
    with counted(store) as operations:
        table.put(b"k", b"2")
    with store.connection.view() as view:
        assert view.count(CHANGES) == before + 1
    assert operations.writes < 15


def test_a_deleted_table_leaves_no_changes(store: Store, table: Table) -> None:
    """And a table of the same name begins anew."""
    table.put(b"k", b"1")
    store.admin.tables.delete_table(table.name)
    with pytest.raises(TableNotFound):
        list(table.changes())
    with store.connection.view() as view:
        assert view.count(CHANGES) == 0
    store.create_table(table.name)
    assert list(store.table(table.name).changes()) == []
