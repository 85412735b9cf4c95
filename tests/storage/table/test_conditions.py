"""`if_version` and `if_absent` on everything that can stand under a key: when they hold, and what they leave.

A condition is about the newest version that the transaction sees, its own writes included; 0 is for none. It counts
as a read of its key, whether it holds or not.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import product

import pytest

from storage import Store, Table, Transaction, TxnID
from storage.errors import ConditionFailed, WriteTooOld
from storage.process.clock import ManualClock
from tests.row_json import row_json

Txn = Transaction | TxnID
WriteMany = Callable[[TxnID, dict[bytes, bytes]], None]
ABSENT = 0
OTHER = 12345


def unfinalized(store: Store, table: Table, write_many: WriteMany, key: bytes) -> int:
    txn = store.begin_transaction()
    write_many(txn, {key: b"committed"})
    store.commit_transaction(txn)
    assert row_json(table.versions(key))[0]["intent"]
    return int(row_json(store.reports.show_transaction(txn))["timestamp"])


def deleted(store: Store, table: Table, write_many: WriteMany, key: bytes) -> int:
    table.put(key, b"v")
    table.delete(key)
    return ABSENT


def pushed(store: Store, table: Table, write_many: WriteMany, key: bytes) -> int:
    """Of an older transaction in progress, which the condition pushes."""
    version = table.put(key, b"below")
    table.put(key, b"open", txn=store.begin_transaction())
    return version


def own_put(table: Table, key: bytes, txn: Txn) -> int:
    return table.put(key, b"own", txn=txn)


def own_deletion(table: Table, key: bytes, txn: Txn) -> int:
    table.delete(key, txn=txn)
    return ABSENT


BEFORE: dict[str, Callable[[Store, Table, WriteMany, bytes], int]] = {
    "nothing": lambda store, table, write_many, key: ABSENT,
    "a value": lambda store, table, write_many, key: table.put(key, b"v"),
    "a deletion": deleted,
    "committed, not finalised": unfinalized,
    "an intent in progress": pushed,
}
OWN: dict[str, Callable[[Table, bytes, Txn], int]] = {"own put": own_put, "own deletion": own_deletion}


def attempt(table: Table, key: bytes, txn: Txn, wanted: int | None) -> bool:
    """Whether the condition held; None asks by `if_absent`."""
    try:
        if wanted is None:
            table.put(key, b"new", txn=txn, if_absent=True)
        else:
            table.put(key, b"new", txn=txn, if_version=wanted)
    except ConditionFailed:
        return False
    return True


@pytest.mark.parametrize("wanted", ["what is seen", "nothing", "absent", "another"])
def test_a_condition_holds_exactly_if_it_is_what_the_transaction_sees(
    store: Store, table: Table, write_many: WriteMany, begin: Callable[[], Txn], wanted: str
) -> None:
    """Over every state of a key, with own writes over it or not; after a failure the transaction goes on."""
    for number, (before, own) in enumerate(product(BEFORE, [None, *OWN])):
        key = b"k%02d" % number
        seen = BEFORE[before](store, table, write_many, key)
        txn = begin()
        if own is not None:
            seen = OWN[own](table, key, txn)
        as_before = table.get(key, txn=txn)
        ask = {"what is seen": seen, "nothing": 0, "absent": None, "another": OTHER}[wanted]
        held = attempt(table, key, txn, ask)
        assert held == ((ask or 0) == seen), (before, own)
        assert table.get(key, txn=txn) == (b"new" if held else as_before)
        table.put(b"other" + key, b"v", txn=txn)
        store.commit_transaction(txn)
        assert table.get(key) == (b"new" if held else as_before)
        assert table.get(b"other" + key) == b"v"


def test_a_later_version_is_not_what_a_condition_is_about(
    store: Store, table: Table, begin: Callable[[], Txn]
) -> None:
    """A commit after it began does not make the condition fail, nor hold; the write is too old all the same."""
    for key, before in ((b"there", b"1"), (b"not there", None)):
        seen = table.put(key, before) if before else None
        txn = begin()
        later = table.put(key, b"2")
        assert not attempt(table, key, txn, later)
        with pytest.raises(WriteTooOld):
            _ = attempt(table, key, txn, seen) and store.commit_transaction(txn)
        assert table.get(key) == b"2"


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("deletes", [True, False])
def test_a_condition_counts_as_a_read(
    store: Store, table: Table, begin: Callable[[], Txn], holds: bool, deletes: bool
) -> None:
    """An older writer cannot change under it what it has found, also when it has long committed."""
    version = table.put(b"k", b"v")
    old, txn = store.begin_transaction(), begin()
    asked = version if holds else OTHER
    try:
        if deletes:
            table.delete(b"k", txn=txn, if_version=asked)
        else:
            table.put(b"k", b"new", txn=txn, if_version=asked)
    except ConditionFailed:
        assert not holds
        store.commit_transaction(txn)
    with pytest.raises(WriteTooOld):
        table.put(b"k", b"older", txn=old)


def test_of_many_who_create_a_key_one_does(store: Store, table: Table) -> None:
    """Taken in any order: the others are refused, by the condition or for being too old."""
    txns = [store.begin_transaction() for _ in range(5)]
    created = []
    for txn in (txns[2], txns[4], txns[0], txns[3], txns[1]):
        try:
            table.put(b"leader", str(txn).encode(), txn=txn, if_absent=True)
            store.commit_transaction(txn)
            created.append(str(txn).encode())
        except (ConditionFailed, WriteTooOld):
            continue
    assert [table.get(b"leader")] == created
    with pytest.raises(ConditionFailed):
        table.put(b"leader", b"late", if_absent=True)


@pytest.mark.parametrize("idle_s", [0, 11, 86_400], ids=["at once", "past the mark", "a day later"])
def test_what_comes_to_nothing_leaves_no_transaction_behind(
    store: Store, table: Table, clock: ManualClock, idle_s: int
) -> None:
    """However long ago timestamps were reserved, and where the file of reads is gone too (invariant 24)."""
    table.put(b"k", b"v")
    before = [row["txnId"] for row in row_json(store.reports.list_transactions(ended=True))]
    for is_gone in (False, True):
        clock.advance(idle_s)
        if is_gone:
            os.unlink(os.path.join(store.path, "reads.cache"))
        with pytest.raises(ConditionFailed):
            table.put(b"k", b"w", if_absent=True)
        with pytest.raises(ConditionFailed):
            table.delete(b"k", if_version=7)
        with store.transaction() as reader:
            assert table.get(b"k", txn=reader) == b"v"
        store.transaction().abort()
    assert [row["txnId"] for row in row_json(store.reports.list_transactions(ended=True))] == before
    assert row_json(store.reports.list_transactions()) == []
