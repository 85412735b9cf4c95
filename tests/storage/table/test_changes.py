"""The changes of a table: every version that is kept, in the order of versions, and a clear error for older ones."""

from __future__ import annotations

import pytest

from storage import Store, Table
from storage.errors import RequestTooOld
from storage.limits import FINALIZE_INLINE_MAX
from storage.process.clock import ManualClock
from storage.table.changes import Change


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
