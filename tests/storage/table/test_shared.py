"""An attached transaction that others use by its number, and many rows written in a few store transactions."""

from __future__ import annotations

from storage import EARLIEST, Store, Table, TransactionState
from tests.row_json import row_json


def test_what_it_kept_is_seen_by_its_number(store: Store, table: Table) -> None:
    """Asking for the number writes what was kept, and nothing is kept afterwards."""
    txn = store.transaction()
    table.put(b"k", b"1", txn=txn)
    number = txn.id
    assert table.get(b"k", txn=number) == b"1"
    table.put(b"k", b"2", txn=txn)
    assert table.get(b"k", txn=str(number)) == b"2"


def test_the_later_put_wins_whichever_name_it_used(store: Store, table: Table) -> None:
    """By the handle, then by the number."""
    txn = store.transaction()
    table.put(b"k", b"1", txn=txn)
    table.put(b"k", b"2", txn=txn.id)
    txn.commit()
    assert table.get(b"k") == b"2"


def test_tables_used_by_its_number_bound_what_its_handle_receives(store: Store, table: Table) -> None:
    """A newer message is not handed to it."""
    with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
        txn = store.transaction()
        table.get(b"k", txn=txn.id)
        store.create_producer("t").send(b"newer")
        assert list(consumer.receive_batch(1, 0, txn=txn)) == []
        txn.abort()


def test_sending_in_it_does_not_end_the_keeping_of_puts(store: Store, table: Table) -> None:
    """Only asking for the number does: a put costs no commit after a send."""
    with store.transaction() as txn:
        store.create_producer("t").send(b"m", txn=txn)
        table.put(b"first", b"", txn=txn)
        before = row_json(store.reports.store_info())["commits"]
        table.put(b"k", b"1", txn=txn)
        assert row_json(store.reports.store_info())["commits"] == before
    assert table.get(b"k") == b"1"


def test_an_attached_read_committed_transaction_is_ended_by_the_store_too(store: Store, table: Table) -> None:
    """True the first time, False when it had ended."""
    txn = store.transaction(isolation="read-committed")
    assert (store.commit_transaction(txn), store.commit_transaction(txn)) == (True, False)
    assert txn.state is TransactionState.COMMITTED


def test_many_rows_of_a_detached_transaction_are_a_few_commits(store: Store, table: Table) -> None:
    """And all of them are there when it is committed, none before."""
    txn, before = store.begin_transaction(), row_json(store.reports.store_info())["commits"]
    assert table.import_rows(((b"%05d" % n, b"") for n in range(2500)), txn=txn) == 2500
    assert row_json(store.reports.store_info())["commits"] - before <= 5
    assert list(table.scan()) == []
    store.commit_transaction(txn)
    assert len(list(table.scan())) == 2500


def test_many_rows_may_delete_some(store: Store, table: Table) -> None:
    """A value of None deletes its key, in the same transaction as the others are written; the last one counts."""
    table.import_rows([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
    table.import_rows([(b"a", None), (b"b", b"2"), (b"c", b"2"), (b"c", None), (b"d", None)])
    assert [(row.key, row.value) for row in table.scan()] == [(b"b", b"2")]
