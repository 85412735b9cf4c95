"""Read committed: `storage/client/read_committed.py`."""

from __future__ import annotations

import pytest

from storage import CheckMode, Store, Table, Transaction, TxnID
from storage.errors import (
    InvalidValue,
    ReadOnlyTransaction,
    TransactionNotOpen,
    TransactionTimedOut,
)  # fmt: skip
from storage.process.clock import ManualClock
from tests.row_json import row_json


def test_writing_in_a_read_committed_transaction_is_refused_with_advice(store: Store, table: Table) -> None:
    """Puts, deletions, messages and acknowledgements alike; it stays usable for reading."""
    store.create_producer("t").send(b"m")
    consumer = store.subscribe("t", "s", initial_position=__import__("storage").EARLIEST)
    message = consumer.receive(timeout=0)
    readers: list[Transaction | TxnID] = [
        store.transaction(isolation="read-committed"),
        store.begin_transaction(isolation="read-committed"),
    ]
    for reader in readers:
        for action in (
            lambda txn: table.put(b"k", b"v", txn=txn),
            lambda txn: table.delete(b"k", txn=txn),
            lambda txn: table.put(b"k", b"v", txn=txn, if_absent=True),
            lambda txn: store.create_producer("t").send(b"x", txn=txn),
            lambda txn: consumer.acknowledge(message, txn=txn),
        ):
            with pytest.raises(ReadOnlyTransaction) as raised:
                action(reader)
            assert "serializable" in str(raised.value.hint)
        assert table.get(b"k", txn=reader) is None
    consumer.close()
    assert row_json(store.reports.list_transactions())[0]["messages"] == 0


def test_an_ended_or_overdue_read_committed_transaction_is_not_read_in(
    store: Store, table: Table, clock: ManualClock
) -> None:
    """Its record is followed, and nothing is written, not even its end."""
    ended, overdue = (store.begin_transaction(isolation="read-committed", timeout=60) for _ in range(2))
    store.commit_transaction(ended)
    with pytest.raises(TransactionNotOpen):
        table.get(b"k", txn=ended)
    clock.advance(61)
    commits = row_json(store.reports.store_info())["commits"]
    with pytest.raises(TransactionTimedOut):
        table.get(b"k", txn=overdue)
    assert row_json(store.reports.store_info())["commits"] == commits
    here = store.transaction(isolation="read-committed")
    here.commit()
    with pytest.raises(TransactionNotOpen):
        table.get(b"k", txn=here)


def test_options_are_checked(store: Store, table: Table) -> None:
    """A serializable transaction has no check mode; names are taken in any spelling."""
    with pytest.raises(InvalidValue):
        store.begin_transaction(check="full")
    with pytest.raises(InvalidValue):
        store.begin_transaction(isolation="snapshot")
    with pytest.raises(InvalidValue):
        store.begin_transaction(priority="urgent")
    for name in ("READ_COMMITTED", "read-committed", "read_committed"):
        shown = row_json(
            store.reports.show_transaction(
                store.begin_transaction(isolation=name, check="FULL", priority="Lowest")
            )
        )
        assert [shown[each] for each in ("isolation", "check", "priority")] == [
            "READ_COMMITTED", "full", "lowest",
        ]  # fmt: skip
    with pytest.raises(InvalidValue):
        table.get(b"k", txn=store.begin_transaction(), check=CheckMode.FULL)
