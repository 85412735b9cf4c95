"""Work beside many open transactions on a server: hardly more statements and rows with 1,000 than with 10."""

from __future__ import annotations

import pytest

from storage import Store, TxnID
from storage.disk.schema import OPEN_FIRST
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore
from tests.storage.many_messages import begin_open
from tests.storage.server_statements import counted_statements

FEW, MANY = 10, 1000


@pytest.mark.parametrize("at", [0, 3, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("is_committed", [True, False], ids=["commit", "abort"])
def test_an_end_reads_a_bounded_part_of_the_index(url: str, at: int, is_committed: bool) -> None:
    """The end of the first open transaction compares the first few records with the topic's own count."""
    totals = []

    def end(store: Store, txn: TxnID) -> None:
        if is_committed:
            assert store.commit_transaction(txn)
        else:
            assert not store.admin.transactions.abort_transaction(txn).already

    for topic, number in (("few", FEW), ("many", MANY)):
        with Store.open(url) as store:
            store.create_topic(topic)
            txns = begin_open(store, topic, number)
        with Store.open(url) as store:
            end(store, txns.pop(1))
            with counted_statements() as statements:
                end(store, txns[at])
        totals.append((statements.number, statements.rows))
    (few_statements, few_rows), (many_statements, many_rows) = totals
    # A cursor reads ahead: a stretch of rows more where there are more.
    assert many_statements <= few_statements + 1
    assert many_rows <= few_rows + 16


def test_a_lost_record_among_few_is_noticed(store: Store) -> None:
    """With as few open transactions as one look shows the comparison is exact."""
    store.create_topic("t")
    txns = begin_open(store, "t", 4)

    def lose(batch: WriteBatch) -> None:
        assert batch.delete(OPEN_FIRST, list(batch.keys(OPEN_FIRST))[1])

    def commit(batch: WriteBatch) -> None:
        lose(batch)
        store.engine.coordinator.commit(batch, txns[0].least, store.engine.process)

    # The loss goes with the refused batch.
    with pytest.raises(CorruptStore):
        store.connection.write(commit)
