"""Changes between two versions as an application reads them: cut by versions, up to a final one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from storage import Store, Table
from storage.errors import InvalidValue, RequestTooOld
from storage.process.clock import ManualClock


def test_a_list_ends_where_the_next_begins(table: Table) -> None:
    """`since` is left out, `until` is in: a cut at any version loses and repeats nothing."""
    versions = [table.put(b"k%d" % number, b"v") for number in range(5)]
    for cut in (versions[0] - 1, *versions, versions[-1] + 1):
        first, rest = table.changes(until=cut), table.changes(since=cut)
        assert [each.version_ns for each in (*first, *rest)] == versions


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


def test_waiting_ends_with_a_commit(store: Store, table: Table) -> None:
    """One that came after the changes were listed: at once, and else after the time."""
    changes = table.changes()
    changes.wait(0.01)
    assert not changes.has_any()
    table.put(b"k", b"1")
    changes.wait(1000)
    assert table.changes(since=changes.until).count() == 1


def test_a_start_above_an_open_transaction_is_lowered(store: Store, table: Table) -> None:
    """As a read at that time is: the rows read there and the changes since are the whole."""
    early = store.begin_transaction()
    late = table.put(b"late", b"2")
    rows = {row.key: row.value for row in table.scan(at=late)}
    since = table.changes(since=late).since
    assert (rows, since) == ({}, table.version_at(late).version)
    table.put(b"early", b"1", txn=early)
    store.commit_transaction(early)
    assert [each.key for each in table.changes(since=since)] == [b"early", b"late"]


def test_a_start_in_the_future_is_refused(store: Store, table: Table, clock: ManualClock) -> None:
    """An empty list would say that nothing will change; the present moment is a start."""
    table.put(b"k", b"1")
    assert list(table.changes(since=clock.wall_ns() + 999_999)) == []
    with pytest.raises(InvalidValue, match="is in the future"):
        table.changes(since=clock.wall_ns() + 10**9)


@pytest.mark.parametrize("since", [-1, 1 << 63, "1", 1.0])
def test_a_start_that_is_no_version_is_refused(table: Table, since: Any) -> None:
    """Before anything is read."""
    with pytest.raises(InvalidValue, match="a version is a whole number"):
        table.changes(since=since)
