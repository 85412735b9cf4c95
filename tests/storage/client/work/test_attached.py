"""Attached transactions keep their puts in the process: what that costs, and that nobody can tell."""

from __future__ import annotations

import pytest

from storage import Store, Table, TransactionState
from storage.errors import InvalidValue, LostConflict, WriterBusy, WriteTooOld
from storage.limits import BUFFER_BYTES_MAX, BUFFER_KEYS_MAX, TABLE_VALUE_BYTES_MAX
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.busy import busy


def commits(store: Store) -> int:
    return int(row_json(store.reports.store_info())["commits"])


@pytest.fixture
def warm(store: Store, table: Table) -> Table:
    """`accounts` with two balances, after a first transaction of this process."""
    with store.transaction() as txn:
        table.put(b"a", b"100", txn=txn)
        table.put(b"b", b"100", txn=txn)
    return table


def test_a_transfer_is_one_durable_commit(store: Store, warm: Table) -> None:
    """Begin, two reads, two writes, commit: one fsync in all."""
    before = commits(store)
    with store.transaction() as txn:
        a, b = (int(warm.get(key, txn=txn) or b"") for key in (b"a", b"b"))
        warm.put(b"a", b"%d" % (a - 1), txn=txn)
        warm.put(b"b", b"%d" % (b + 1), txn=txn)
    assert commits(store) - before == 1
    assert [row.value for row in warm.scan()] == [b"99", b"101"]


def test_a_transaction_that_only_reads_costs_no_commit(store: Store, warm: Table) -> None:
    """Its reads are recorded in shared memory, and it leaves no record behind."""
    before, count = commits(store), row_json(store.reports.store_info())["transactions"]
    with store.transaction() as txn:
        assert warm.get(b"a", txn=txn) == b"100"
        assert len(list(warm.scan(txn=txn))) == 2
    assert txn.state is TransactionState.COMMITTED
    assert (commits(store), row_json(store.reports.store_info())["transactions"]) == (before, count)


def test_a_put_outside_any_transaction_is_one_durable_commit(store: Store, warm: Table) -> None:
    """So is a condition with it."""
    before = commits(store)
    version = warm.put(b"a", b"1")
    warm.put(b"a", b"2", if_version=version)
    warm.delete(b"a")
    assert commits(store) - before == 3


def test_a_commit_leaves_no_intents(store: Store, warm: Table) -> None:
    """What is decided in the same store transaction needs none, however many keys."""
    with store.transaction() as txn:
        for number in range(BUFFER_KEYS_MAX - 1):
            warm.put(b"k%d" % number, b"v", txn=txn)
    assert row_json(warm.stats())["intents"] == 0
    shown = row_json(store.reports.show_transaction(txn))["parts"]
    assert [(part["table"], part["keys"]) for part in shown] == [("accounts", BUFFER_KEYS_MAX - 1)]


def test_a_full_buffer_becomes_intents(store: Store, warm: Table) -> None:
    """Bounded memory: others see who holds the keys, and the commit takes them and the rest together."""
    txn = store.transaction()
    for number in range(BUFFER_KEYS_MAX + 10):
        warm.put(b"k%05d" % number, b"v", txn=txn)
    assert row_json(warm.stats())["intents"] == BUFFER_KEYS_MAX
    warm.put(b"k00003", b"again", txn=txn)
    warm.delete(b"k00004", txn=txn)
    assert warm.get(b"k00003", txn=txn) == b"again"
    assert len(list(warm.scan(prefix=b"k", txn=txn))) == BUFFER_KEYS_MAX + 9
    txn.commit()
    assert len(list(warm.scan(prefix=b"k"))) == BUFFER_KEYS_MAX + 9
    assert warm.get(b"k00003") == b"again"
    assert row_json(store.maintenance.collect_garbage())["intentsFinalized"] == BUFFER_KEYS_MAX - 2
    assert store.maintenance.verify_store() == []


def test_a_put_that_finds_no_room_and_is_refused_is_not_kept(
    store: Store, warm: Table, path: str, clock: ManualClock
) -> None:
    """The store was too busy to take what was kept before: the commit has all of that, and not this one."""
    with Store.open(path, clock=clock, lock_timeout=0.05) as impatient:
        table, txn = impatient.table("accounts"), impatient.transaction()
        for number in range(BUFFER_KEYS_MAX):
            table.put(b"k%05d" % number, b"v", txn=txn)
        with busy(store), pytest.raises(WriterBusy):
            table.put(b"refused", b"never", txn=txn)
        assert table.get(b"refused", txn=txn) is None
        txn.commit()
    assert (warm.get(b"refused"), len(list(warm.scan(prefix=b"k")))) == (None, BUFFER_KEYS_MAX)


def test_what_is_kept_is_bounded_in_bytes(store: Store, warm: Table) -> None:
    """One value may be larger than what is kept otherwise; it is kept alone."""
    large = b"x" * (BUFFER_BYTES_MAX // 2 + 1)
    txn = store.transaction()
    warm.put(b"a", large, txn=txn)
    assert row_json(store.reports.list_intents()) == []
    warm.put(b"b", large, txn=txn)
    assert [row.key for row in store.reports.list_intents()] == [b"a"]
    warm.put(b"c", b"x" * TABLE_VALUE_BYTES_MAX, txn=txn)
    assert [row.key for row in store.reports.list_intents()] == [b"a", b"b"]
    txn.commit()
    assert [len(row.value) for row in warm.scan()] == [len(large), len(large), TABLE_VALUE_BYTES_MAX]


def test_flush_shows_conflicts_before_the_commit(store: Store, warm: Table) -> None:
    """It leaves the intents that a detached transaction leaves at once."""
    older, newer = store.transaction(), store.transaction()
    warm.put(b"a", b"1", txn=older)
    warm.put(b"a", b"2", txn=newer)
    older.flush()
    newer.flush()
    with pytest.raises(LostConflict):
        warm.get(b"b", txn=older)
    assert older.state is TransactionState.ABORTED
    newer.commit()
    assert warm.get(b"a") == b"2"


def test_numbers_are_given_when_they_are_asked_for(store: Store, warm: Table) -> None:
    """The transaction goes on as it was: its timestamp, its reads, its puts."""
    txn = store.transaction()
    began = txn.timestamp
    assert warm.get(b"a", txn=txn) == b"100"
    warm.put(b"a", b"1", txn=txn)
    number = txn.id
    assert row_json(store.reports.show_transaction(number))["state"] == "OPEN"
    assert row_json(store.reports.show_transaction(number))["timestamp"] == str(began) == str(txn.timestamp)
    assert (warm.get(b"a", txn=txn), warm.get(b"a")) == (b"1", b"100")
    txn.commit()
    assert (warm.get(b"a"), txn.id) == (b"1", number)


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_transaction_that_ended_without_a_record_has_a_number_all_the_same(
    store: Store, warm: Table, end: str
) -> None:
    """Asked for afterwards, it is one that ended so."""
    txn = store.transaction()
    assert warm.get(b"a", txn=txn) == b"100"
    getattr(txn, end)()
    getattr(txn, end)()
    expected = TransactionState.COMMITTED if end == "commit" else TransactionState.ABORTED
    assert txn.state is expected
    before = commits(store)
    assert row_json(store.reports.show_transaction(txn.id))["state"] == expected.value
    assert commits(store) == before + 1, "whoever is killed in between leaves nothing that ends otherwise"


def test_an_abort_without_a_record_drops_what_was_kept(store: Store, warm: Table) -> None:
    """Nothing was written, nothing is left."""
    before = commits(store)
    txn = store.transaction()
    warm.put(b"a", b"1", txn=txn)
    with pytest.raises(InvalidValue), txn:
        warm.put(b"", b"1", txn=txn)
    assert txn.state is TransactionState.ABORTED
    assert commits(store) == before
    assert warm.get(b"a") == b"100"


def test_a_refused_commit_has_a_record_that_says_why(store: Store, warm: Table) -> None:
    """Also of a transaction that had none before: the doom is durable, and named."""
    txn = store.transaction()
    warm.put(b"a", b"1", txn=txn)
    warm.put(b"a", b"later")
    with pytest.raises(WriteTooOld) as raised:
        txn.commit()
    assert txn.state is TransactionState.ABORTED
    row = store.reports.show_transaction(str(raised.value.details["transaction"]))
    shown = row_json(row)
    assert (shown["state"], shown["reason"]) == ("ABORTED", "refused-write")
    assert row.conflict is not None
    assert row.conflict.key == b"a"
    assert str(txn) == shown["txnId"]
    assert warm.get(b"a") == b"later"


def test_timestamps_grow_with_begin_however_it_is_made(store: Store, warm: Table) -> None:
    """Attached, detached, plain puts: one order."""
    issued = []
    for _ in range(5):
        issued.append(store.transaction().timestamp)
        issued.append(int(row_json(store.reports.show_transaction(store.begin_transaction()))["timestamp"]))
        issued.append(warm.put(b"a", b"x"))
    assert issued == sorted(set(issued))
