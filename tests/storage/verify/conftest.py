"""Fixtures of the tests in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store, Table
from storage.errors import LostConflict, WriteTooOld
from storage.process.clock import ManualClock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store, which is not verified at the end: tests damage it."""
    path = str(tmp_path / "store")
    Store.create(path, clock=(clock := ManualClock()))
    with Store.open(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def table(store: Store) -> Table:
    """The table `accounts` of `store`, with `a` written twice."""
    store.create_table("accounts")
    made = store.table("accounts")
    made.put(b"a", b"1")
    made.put(b"a", b"2")
    return made


@pytest.fixture
def written(store: Store) -> Store:
    """A store with something of everything, sound: ledgers of 4; a committed, an aborted and an open transaction."""
    store.create_topic("t", ledger_entries_max=4)
    producer = store.create_producer("t", producer_name="p")
    producer.send_batch([b"0", b"1", b"2"])
    txns = [store.begin_transaction() for _ in range(3)]
    for txn in txns:
        producer.send_batch([b"x", b"y"], txn=txn)
    store.commit_transaction(txns[0])
    store.admin.transactions.abort_transaction(txns[1])
    producer.send(b"z")
    consumer = store.subscribe("t", "a", initial_position=EARLIEST)
    messages = consumer.receive_batch(9, timeout=0)
    consumer.acknowledge(messages[1])
    consumer.acknowledge(messages[2], txn=txns[2])
    assert store.maintenance.verify_store(full=True) == []
    return store


@pytest.fixture
def contended(store: Store, table: Table) -> Store:
    """A sound store: `a` written twice, `b` held by an open transaction; one lost a push, one was refused a write."""
    held, loser, refused = (
        store.begin_transaction(priority="high"),
        store.begin_transaction(),
        store.begin_transaction(),
    )
    table.put(b"b", b"3", txn=held)
    with pytest.raises(LostConflict):
        table.put(b"b", b"4", txn=loser)
    table.put(b"c", b"5")
    with pytest.raises(WriteTooOld):
        table.put(b"c", b"6", txn=refused)
    assert store.maintenance.verify_store() == []
    return store
