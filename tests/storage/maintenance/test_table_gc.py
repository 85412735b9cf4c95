"""gc works in store transactions of a bounded size, by records and by bytes; counted, not timed."""

from __future__ import annotations

import pytest

from storage import Store, Table
from storage.limits import FINALIZE_INLINE_MAX, GC_STEP_RECORDS, TABLE_VALUE_BYTES_MAX
from storage.process.clock import ManualClock
from storage.table import retention
from tests.row_json import row_json

COUNT = 2 * GC_STEP_RECORDS + 10
"""Takes three steps."""


def commits(store: Store) -> int:
    """How many store transactions there have been."""
    with store.connection.view() as view:
        return view.superblock.commits


def collected(store: Store) -> tuple[dict[str, object], int]:
    """What gc did, in how many store transactions; one of them tells the audit trail."""
    before = commits(store)
    done = row_json(store.maintenance.collect_garbage())
    return done, commits(store) - before - 1


def test_finalising_is_done_in_steps(store: Store, table: Table) -> None:
    """Of one transaction and of several, committed and aborted."""
    for is_committed, keys in ((True, COUNT - 200), (False, FINALIZE_INLINE_MAX + 36), (True, 100)):
        txn = store.begin_transaction()
        table.import_rows(((b"%d:%05d" % (txn.least, n), b"v") for n in range(keys)), txn=txn)
        (store.commit_transaction if is_committed else store.admin.transactions.abort_transaction)(txn)
    done, steps = collected(store)
    assert (done["intentsFinalized"], steps) == (COUNT, 3)
    assert row_json(table.stats())["intents"] == 0
    assert row_json(table.stats())["keys"] == COUNT - 100


def test_removing_versions_and_deleted_keys_is_done_in_steps(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """Of many keys, and of one that was written often."""
    for value in (b"1", b"2"):
        table.import_rows((b"%05d" % n, value) for n in range(COUNT))
    store.maintenance.collect_garbage()
    with store.transaction() as txn:
        for number in range(COUNT):
            table.delete(b"%05d" % number, txn=txn)
    store.maintenance.collect_garbage()
    for number in range(GC_STEP_RECORDS // 4):
        table.put(b"hot", b"%d" % number)
    clock.advance(3601)
    done, steps = collected(store)
    versions = 2 * COUNT + GC_STEP_RECORDS // 4 - 1
    assert (done["versionsRemoved"], done["tombstonesRemoved"]) == (versions, COUNT)
    changes = versions + COUNT + 1
    assert steps == -(-versions // GC_STEP_RECORDS) - (-changes // GC_STEP_RECORDS) + 3
    assert [row.key for row in table.scan()] == [b"hot"]


def test_forgetting_outcomes_is_done_in_steps(store: Store, clock: ManualClock) -> None:
    """As many transactions as take two."""
    for _ in range(GC_STEP_RECORDS + 1):
        store.admin.transactions.abort_transaction(store.begin_transaction())
    clock.advance(24 * 3600 + 1)
    done, steps = collected(store)
    assert (done["outcomesRemoved"], steps) == (GC_STEP_RECORDS + 1, 2)


def test_open_transactions_cost_no_store_transaction(
    store: Store, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are passed over in views, however many there are; what comes after them is found."""
    monkeypatch.setattr(retention, "GC_LOOK_RECORDS", 7)
    still = [store.begin_transaction() for _ in range(40)]
    for txn in still:
        table.put(b"%d" % txn.least, b"", txn=txn)
    last = store.begin_transaction()
    table.import_rows(((b"~%d" % n, b"v") for n in range(FINALIZE_INLINE_MAX + 1)), txn=last)
    before = commits(store)
    assert row_json(store.maintenance.collect_garbage())["intentsFinalized"] == 0
    assert commits(store) == before
    store.commit_transaction(last)
    done, steps = collected(store)
    assert (done["intentsFinalized"], steps) == (FINALIZE_INLINE_MAX + 1, 1)
    assert row_json(table.stats())["heldIntents"] == len(still)


def test_long_values_bound_a_step_and_a_commit(store: Store, table: Table) -> None:
    """A commit finalises only what has room in it, however few the keys; gc the rest, one at a time."""
    count, value = 6, bytes(TABLE_VALUE_BYTES_MAX)
    txn = store.begin_transaction()
    for number in range(count):
        table.put(b"%d" % number, value, txn=txn)
    store.commit_transaction(txn)
    left = row_json(table.stats())["intents"]
    assert 0 < left < count
    assert row_json(table.stats())["heldIntents"] == 0
    assert all(table.get(b"%d" % number) == value for number in range(count))
    done, steps = collected(store)
    assert (done["intentsFinalized"], steps) == (left, left)
    assert row_json(table.stats())["keys"] == count


def test_a_deleted_table_goes_in_steps(store: Store, table: Table) -> None:
    """Rows first, then what they superseded."""
    for value in (b"1", b"2"):
        table.import_rows((b"%05d" % n, value) for n in range(COUNT))
    before = commits(store)
    store.admin.tables.delete_table("accounts", force=True)
    assert commits(store) - before >= 6
    assert {row["database"]: row["entries"] for row in row_json(store.reports.list_databases())}["rows"] == 0
