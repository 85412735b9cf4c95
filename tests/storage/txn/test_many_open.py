"""Work beside many open transactions: as many operations of LMDB with 1,000 as with 10, and nothing is overlooked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage import Store, TxnID
from storage.disk.schema import OPEN_FIRST
from storage.disk.superblock import UNCOUNTED
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import begin_open

FEW, MANY = 10, 1000

Change = Callable[[Store, list[TxnID]], object]


def operations(tmp_path: Path, change: Change) -> list[int]:
    """The operations of a change beside few and beside many open transactions, each in a store of its own."""
    totals = []
    for number in (FEW, MANY):
        path = tmp_path / f"{number}"
        Store.create(path)
        with Store.open(path) as store:
            store.create_topic("t")
            txns = begin_open(store, "t", number)
            store.commit_transaction(txns.pop(1))  # warms what the first batch of a process reads
            with counted(store) as found:
                change(store, txns)
            totals.append(found.overall)
            assert store.maintenance.verify_store(full=True) == []
    return totals


@pytest.mark.parametrize("at", [0, 3, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize(
    "end",
    [
        lambda store, txn: store.commit_transaction(txn),
        lambda store, txn: store.admin.transactions.abort_transaction(txn),
        lambda store, txn: store.admin.transactions.abort_transaction(txn, dry_run=True),
    ],
    ids=["commit", "abort", "dry_run"],
)
def test_an_end_looks_at_no_other_transaction(
    tmp_path: Path, end: Callable[[Store, TxnID], object], at: int
) -> None:
    """The end of the first open transaction moves maxReadPosition by one look at the index."""
    few, many = operations(tmp_path, lambda store, txns: end(store, txns[at]))
    assert many <= few + 4


def test_ends_one_by_one_are_linear(tmp_path: Path) -> None:
    """Open transactions that end in the order of their begin cost as much each, however many are left."""

    def end_some(store: Store, txns: list[TxnID]) -> None:
        for txn in txns[:8]:
            assert store.commit_transaction(txn)

    few, many = operations(tmp_path, end_some)
    assert many <= few + 40


@pytest.mark.parametrize(
    "take_over",
    [
        lambda store: store.admin.producers.fence_producers("t"),
        lambda store: store.create_producer("t", access_mode="ExclusiveWithFencing").close(),
    ],
    ids=["fence_producers", "new_owner"],
)
def test_a_take_over_is_linear(tmp_path: Path, take_over: Callable[[Store], object]) -> None:
    """A take-over aborts every open transaction of the topic, each at the same cost."""
    few, many = operations(tmp_path, lambda store, _: take_over(store))
    assert many < few / FEW * MANY


def _lose(store: Store, at: int) -> None:
    """Remove a record of the index."""

    def change(batch: WriteBatch) -> None:
        assert batch.delete(OPEN_FIRST, list(batch.keys(OPEN_FIRST))[at])

    store.connection.write(change)


@pytest.fixture
def damaged(tmp_path: Path) -> Store:
    """A store that is not verified at the end."""
    Store.create(tmp_path / "damaged")
    return Store.open(tmp_path / "damaged")


@pytest.mark.parametrize("at", [1, FEW // 2, FEW - 1])
def test_a_lost_record_is_noticed(damaged: Store, at: int) -> None:
    """The end of the first transaction never moves maxReadPosition over one that the index has lost."""
    with damaged as store:
        store.create_topic("t")
        txns = begin_open(store, "t", FEW)
        _lose(store, at)
        with pytest.raises(CorruptStore, match="its state counts 9"):
            store.commit_transaction(txns[0])
        found = [problem.message for problem in store.maintenance.verify_store(full=False)]
        assert "counts 10 records of open_first; there are 9" in found


def test_a_lost_record_of_another_topic_holds_up_none(damaged: Store) -> None:
    """A topic whose own index is whole goes on."""
    with damaged as store:
        for topic in ("t", "u"):
            store.create_topic(topic)
        txns = begin_open(store, "t", FEW)
        begin_open(store, "u", FEW)
        _lose(store, -1)
        assert all(store.commit_transaction(txn) for txn in txns)


def test_a_store_without_the_count_gets_it_once(store: Store) -> None:
    """A store of an earlier release is counted at the first end or begin, by the states of its topics."""
    store.create_topic("u")
    txns = [*begin_open(store, "t", 3), *begin_open(store, "u", 2)]

    def forget(batch: WriteBatch) -> None:
        batch.superblock.open_firsts = UNCOUNTED
        batch.superblock.changes += 1

    def count() -> int:
        with store.connection.view() as view:
            return view.superblock.open_firsts

    assert count() == 5
    store.connection.write(forget)
    assert (count(), store.maintenance.verify_store(full=True)) == (UNCOUNTED, [])
    assert store.commit_transaction(txns[0])
    assert count() == 4
    store.connection.write(forget)
    begin_open(store, "u", 1)
    assert count() == 5
