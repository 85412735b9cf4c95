"""The changes of a table: every version that is kept, in the order of versions, and a clear error for older ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from storage import Store, Table
from storage.errors import RequestTooOld
from storage.limits import FINALIZE_INLINE_MAX
from storage.process.clock import ManualClock
from storage.table.changes import Change
from tests.model_runs import examples

WINDOW_S = 100
KEYS = st.sets(st.sampled_from([b"a", b"a\0", b"b", b"cccccccc"]), min_size=1)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "delete"]), KEYS, st.booleans()),
    st.tuples(st.sampled_from(["wait", "gc"]), st.just(set[bytes]()), st.just(True)),
)
Step = tuple[str, set[bytes], bool]


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


@settings(max_examples=examples(40), deadline=None)
@given(steps=st.lists(STEPS, min_size=8, max_size=40))
def test_rows_at_a_version_and_the_changes_since_are_the_rows_of_now(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    """From every version that is kept, whatever was written, aborted and collected; each change fits the one before."""
    clock = ManualClock()
    place = str(tmp_path_factory.mktemp("changes") / "store")
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as store:
        store.admin.settings.set_table_retention(WINDOW_S * 1000)
        store.create_table("model")
        table = store.table("model")
        for kind, keys, ends_well in steps:
            if kind == "wait":
                clock.advance(WINDOW_S / 3)
            elif kind == "gc":
                store.maintenance.collect_garbage()
            else:
                txn = store.begin_transaction()
                for key in keys:
                    table.put(key, b"%d" % txn.least, txn=txn) if kind == "put" else table.delete(
                        key, txn=txn
                    )
                (store.commit_transaction if ends_well else store.admin.transactions.abort_transaction)(txn)
        changes = list(table.changes())
        rows = {row.key: row.value for row in table.scan()}
        for change in reversed(changes):
            assert rows.pop(change.key, None) == change.value
            if change.previous_value is not None:
                rows[change.key] = change.previous_value
            kinds = {(False, True): "insert", (True, True): "update"}
            assert change.kind == kinds.get(
                (change.previous_value is not None, change.value is not None), "delete"
            )
            since = change.version_ns - 1
            if since >= clock.wall_ns() - WINDOW_S * 10**9 and change is first_of(changes, change):
                assert rows == {row.key: row.value for row in table.scan(at=since)}
        assert store.maintenance.verify_store() == []


def first_of(changes: list[Change], change: Change) -> Change:
    """The first change of the same transaction."""
    return next(each for each in changes if each.version_ns == change.version_ns)
