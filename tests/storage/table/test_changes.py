"""The changes of a table: every version that is kept, in the order of versions, and a clear error for older ones."""

from __future__ import annotations

from itertools import pairwise

import pytest

from storage import Store, Table
from storage.disk.schema import CHANGES
from storage.errors import RequestTooOld, TableNotFound
from storage.limits import FINALIZE_INLINE_MAX
from storage.process.clock import ManualClock
from storage.table.changes import Change
from tests.storage.lmdb_operations import counted
from tests.storage.records_read import records_read


def shown(changes: list[Change]) -> list[tuple[str, bytes, bytes | None, bytes | None]]:
    return [(each.kind, each.key, each.value, each.previous_value) for each in changes]


def test_inserts_updates_and_deletes_come_in_the_order_of_versions(table: Table) -> None:
    """Each with the value before; a key that is written again after its deletion is inserted."""
    versions = [
        table.put(b"b", b"1"),
        table.put(b"a", b"2"),
        table.put(b"b", b""),
        table.delete(b"b"),
        table.put(b"b", b"3"),
        table.delete(b"never"),
    ]
    found = list(table.changes())
    assert shown(found) == [
        ("insert", b"b", b"1", None),
        ("insert", b"a", b"2", None),
        ("update", b"b", b"", b"1"),
        ("delete", b"b", None, b""),
        ("insert", b"b", b"3", None),
        ("delete", b"never", None, None),
    ]
    assert [each.version_ns for each in found] == versions


def test_a_list_ends_where_the_next_begins(table: Table) -> None:
    """`since` is left out, `until` is in: a cut at any version loses and repeats nothing."""
    versions = [table.put(b"k%d" % number, b"v") for number in range(5)]
    for cut in (versions[0] - 1, *versions, versions[-1] + 1):
        first, rest = table.changes(until=cut), table.changes(since=cut)
        assert [each.version_ns for each in (*first, *rest)] == versions


def test_changes_of_a_transaction_have_one_version(store: Store, table: Table) -> None:
    """In the order of their keys, and of a key that was written twice the last value alone."""
    with store.transaction() as txn:
        for key in (b"c", b"a", b"b"):
            table.put(key, b"1", txn=txn)
        txn.flush()
        table.put(b"c", b"2", txn=txn)
    found = list(table.changes())
    assert shown(found) == [
        ("insert", b"a", b"1", None),
        ("insert", b"b", b"1", None),
        ("insert", b"c", b"2", None),
    ]
    assert len({each.version_ns for each in found}) == 1


def test_an_open_transaction_holds_back_later_changes(store: Store, table: Table) -> None:
    """Its own would come before them: they are read once it has ended, in order."""
    early = store.begin_transaction()
    table.put(b"late", b"2")
    table.put(b"early", b"1", txn=early)
    held = table.changes()
    assert list(held) == []
    assert held.final.waits_for == early
    store.commit_transaction(early)
    assert [each.key for each in table.changes(since=held.until)] == [b"early", b"late"]


@pytest.mark.parametrize("committed", [True, False])
def test_intents_of_a_decided_transaction_count_by_its_outcome(
    store: Store, table: Table, committed: bool
) -> None:
    """Also where they are too many to be finalised at the commit."""
    table.put(b"0", b"before")
    txn = store.begin_transaction()
    for number in range(FINALIZE_INLINE_MAX + 1):
        table.put(b"%d" % number, b"x", txn=txn)
    if committed:
        store.commit_transaction(txn)
    else:
        store.admin.transactions.abort_transaction(txn)
    found = list(table.changes())[1:]
    assert len(found) == committed * (FINALIZE_INLINE_MAX + 1)
    store.maintenance.collect_garbage()
    assert list(table.changes())[1:] == found
    assert table.changes().has_any()


def test_a_start_before_the_oldest_change_that_is_kept_is_refused(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """The error names the oldest start; changes from there on have kinds and values as before."""
    store.admin.settings.set_table_retention(150_000)
    versions = []
    for number in range(6):
        versions.append(table.put(b"k", b"%d" % number))
        clock.advance(60)
    before = shown(list(table.changes()))
    store.maintenance.collect_garbage()
    changes = table.changes()
    assert changes.since == versions[3]
    assert shown(list(changes)) == before[4:] == [("update", b"k", b"4", b"3"), ("update", b"k", b"5", b"4")]
    with pytest.raises(RequestTooOld) as refusal:
        table.changes(since=versions[3] - 1)
    assert refusal.value.details["oldestVersion"] == str(versions[3])
    assert str(versions[3]) in refusal.value.message


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


def test_changes_that_are_removed_under_a_reader_are_an_error(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """A page that is no longer complete is never returned."""
    table.import_rows((b"%05d" % number, b"x") for number in range(1100))
    reader = iter(table.changes())
    next(reader)
    clock.advance(10_000)
    store.maintenance.collect_garbage()
    with pytest.raises(RequestTooOld):
        list(reader)


def test_a_part_of_the_changes_holds_whole_transactions(store: Store, table: Table) -> None:
    """At most so many changes, or the whole first version."""
    for size in (3, 1, 2, 2):
        with store.transaction() as txn:
            for number in range(size):
                table.put(b"%d" % number, b"x", txn=txn)
    versions = sorted({each.version_ns for each in table.changes()})
    parts = [versions.index(table.changes().whole_until(limit)) for limit in range(1, 8)]
    assert parts == [0, 0, 0, 1, 1, 2, 2]
    assert table.changes().whole_until(8) == table.changes().until
    rest = table.changes(since=versions[0])
    assert [versions.index(rest.whole_until(limit)) for limit in (1, 2, 3)] == [1, 1, 2]
    assert table.changes(since=versions[-1]).whole_until(1) == versions[-1]


def test_places_cut_the_changes_into_parts(table: Table) -> None:
    """Together the parts are the whole, also within a transaction."""
    table.import_rows((b"%02d" % number, b"x") for number in range(10))
    table.put(b"z", b"x")
    changes = table.changes()
    cuts = changes.split(4)
    bounds = [None, *cuts, None]
    parts = [
        [each.key for each in changes.between(start or changes.first, end)] for start, end in pairwise(bounds)
    ]
    assert [len(part) for part in parts] == [4, 4, 3]
    assert [key for part in parts for key in part] == [each.key for each in changes]


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
