"""The commit of a transaction in the queue of a group."""

from __future__ import annotations

import pytest

from storage import Producer, Store, Table, TransactionState
from storage.errors import (
    GroupRefused,
    LostConflict,
    TransactionNotOpen,
    WriteTooOld,
)
from tests.storage.client.group_steps import ends_in, in_thread
from tests.storage.producer_steps import values


class TestQueuedCommit:
    """Refused alone, used, repeated."""

    def test_a_lost_conflict_leaves_the_others(self, store: Store, table: Table, producer: Producer) -> None:
        """The refused transaction is aborted, and the end of the block names it."""
        with ends_in(GroupRefused) as refusal, store.group() as group:
            with store.transaction() as first:
                producer.send(b"first", txn=first)
            older = store.transaction()
            table.put(b"k", b"old", txn=older)
            in_thread(lambda: table.put(b"k", b"new"))
            in_thread(lambda: table.get(b"k", txn=store.transaction()))
            older.commit()
            with store.transaction() as last:
                producer.send(b"last", txn=last)
        assert values(store) == [b"first", b"last"]
        [refused] = group.refused
        assert refused.subject is older
        assert isinstance(refused.error, WriteTooOld | LostConflict)
        assert (refused.place, group.durable) == (1, 2)
        assert refusal.value.details == {"refused": 1, "durable": 2}
        assert [txn.state for txn in (first, older, last)] == [
            TransactionState.COMMITTED,
            TransactionState.ABORTED,
            TransactionState.COMMITTED,
        ]
        assert table.get(b"k") == b"new"

    def test_a_queued_transaction_cannot_be_used_or_aborted(self, store: Store, producer: Producer) -> None:
        """Its outcome comes first."""
        with store.group():
            with store.transaction() as txn:
                producer.send(b"x", txn=txn)
            with pytest.raises(TransactionNotOpen):
                producer.send(b"y", txn=txn)
            with store.transaction() as second:
                producer.send(b"z", txn=second)
            with pytest.raises(TransactionNotOpen):
                second.abort()
        assert values(store) == [b"x", b"z"]

    def test_a_commit_is_repeated_without_effect(self, store: Store, producer: Producer) -> None:
        """As without a group."""
        with store.group() as group:
            txn = store.transaction()
            producer.send(b"x", txn=txn)
            assert store.commit_transaction(txn)
            assert not store.commit_transaction(txn)
        assert group.durable == 1
        assert values(store) == [b"x"]

    def test_a_repeated_commit_of_an_empty_transaction_is_no_end(self, store: Store) -> None:
        """Also where a refused abort has made a record of the transaction meanwhile."""
        txn = store.transaction()
        txn.commit()
        with store.group() as group:
            with pytest.raises(TransactionNotOpen):
                txn.abort()
            txn.commit()
        assert group.durable == 0
        assert txn.state is TransactionState.COMMITTED
