"""The arbiter: who loses a conflict is aborted, durably, and the conflict is remembered."""

from __future__ import annotations

import pytest

from storage import Store, TransactionState
from storage.disk.view import WriteBatch
from storage.errors import LostConflict, RequestTooOld
from storage.table import conflict as conflicts
from storage.table.arbiter import Arbiter, survives
from storage.table.read import MustPush
from storage.txn import record as records
from storage.values.txn_id import TxnID


def state_of(store: Store, txn: TxnID) -> TransactionState:
    with store.connection.view() as view:
        return records.state_of(view, txn.least)


def arbiter(store: Store, batch: WriteBatch) -> Arbiter:
    return Arbiter(batch, store.engine.coordinator, store.connection.identity)


@pytest.mark.parametrize("reader_wins", [True, False])
def test_a_push_ends_the_reader_or_the_holder(store: Store, reader_wins: bool) -> None:
    """The higher priority survives; either way one conflict is noted, with its loser."""
    low, high = (store.begin_transaction(priority=name) for name in ("low", "high"))
    reader, holder = (high, low) if reader_wins else (low, high)

    def push(batch: WriteBatch) -> None:
        mine = records.open_record(batch, reader.least)
        assert survives(mine, records.get(batch, holder.least)) is reader_wins
        arbiter(store, batch).push_for_read(mine, MustPush(holder.least, 1, b"k"), "accounts")

    if reader_wins:
        store.connection.write(push)
    else:
        with pytest.raises(LostConflict):
            store.connection.write(push)
    assert (state_of(store, high), state_of(store, low)) == (TransactionState.OPEN, TransactionState.ABORTED)
    with store.connection.view() as view:
        ((kind, loser),) = [(row.kind, row.loser) for row in conflicts.list_conflicts(view)]
    assert (kind, loser) == (conflicts.PUSH if reader_wins else conflicts.HELD, low)


def test_a_holder_that_has_ended_is_not_pushed(store: Store) -> None:
    """The reader simply reads again."""
    reader, holder = store.begin_transaction(priority="low"), store.begin_transaction(priority="high")
    store.commit_transaction(holder)

    def push(batch: WriteBatch) -> None:
        mine = records.open_record(batch, reader.least)
        arbiter(store, batch).push_for_read(mine, MustPush(holder.least, 1, b"k"), "accounts")

    store.connection.write(push)
    assert state_of(store, reader) is TransactionState.OPEN


def test_a_table_is_refused_to_who_consumed_a_newer_message(store: Store) -> None:
    """The doom is durable, though the operation is refused."""
    txn = store.begin_transaction()

    def use(batch: WriteBatch) -> None:
        record = records.open_record(batch, txn.least)
        record.consumed = record.timestamp + 1
        arbiter(store, batch).begin_use(record)

    with pytest.raises(RequestTooOld, match="began before a message that it consumed"):
        store.connection.write(use)
    assert state_of(store, txn) is TransactionState.ABORTED
