"""Read committed: `storage/client/read_committed.py`."""

from __future__ import annotations

from typing import Any

import pytest

from storage import CheckMode, Store, Table, Transaction, TransactionIsolation, TransactionState, TxnID
from storage.errors import (
    BadInput,
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


class TestDeadline:
    """An attached read-committed transaction has the deadline that every transaction has."""

    def test_nothing_is_read_after_it(self, store: Store, table: Table, clock: ManualClock) -> None:
        """No read passes, whichever way it takes: the short one of a plain row, a row with its version, a page."""
        table.put(b"k", b"v")
        txn = store.transaction(isolation="read-committed", timeout=5)
        pages = table.scan(txn=txn)
        clock.advance(4.999)
        assert table.get(b"k", txn=txn) == b"v"
        clock.advance(0.001)
        reads = (
            lambda: table.get(b"k", txn=txn),
            lambda: table.get_row(b"k", txn=txn),
            lambda: next(pages),
            lambda: table.scan(txn=txn),
            lambda: table.get(b"missing", txn=txn),
        )
        for read in reads:
            with pytest.raises(TransactionTimedOut, match="5 s"):
                read()

    @pytest.mark.parametrize("is_read_first", [False, True])
    def test_it_is_aborted_then(
        self, store: Store, table: Table, clock: ManualClock, is_read_first: bool
    ) -> None:
        """It cannot be committed any more; repeating the commit says so again, and an abort succeeds."""
        txn = store.transaction(isolation="read-committed", timeout=5)
        clock.advance(5)
        if is_read_first:
            with pytest.raises(TransactionTimedOut):
                table.get(b"k", txn=txn)
        with pytest.raises(TransactionTimedOut):
            txn.commit()
        assert txn.state is TransactionState.ABORTED
        with pytest.raises(TransactionTimedOut):
            txn.commit()
        txn.abort()

    def test_a_block_that_ends_after_it_says_so(self, store: Store, clock: ManualClock) -> None:
        """As for a serializable transaction."""
        for isolation in TransactionIsolation:
            with pytest.raises(TransactionTimedOut), store.transaction(isolation=isolation, timeout=5):
                clock.advance(6)

    def test_committed_in_time_it_stays_committed(self, store: Store, clock: ManualClock) -> None:
        """A commit is repeated however late."""
        with store.transaction(isolation="read-committed", timeout=5) as txn:
            pass
        clock.advance(6)
        txn.commit()
        assert txn.state is TransactionState.COMMITTED

    def test_ten_minutes_where_none_is_given(self, store: Store, table: Table, clock: ManualClock) -> None:
        """The default is that of all transactions."""
        txn = store.transaction(isolation="read-committed")
        clock.advance(599)
        assert table.get(b"k", txn=txn) is None
        clock.advance(1)
        with pytest.raises(TransactionTimedOut):
            table.get(b"k", txn=txn)


@pytest.mark.parametrize("isolation", [*TransactionIsolation, "serializable"])
@pytest.mark.parametrize("begin", ["transaction", "begin_transaction"])
class TestEveryOption:
    """Each option of a transaction is checked in every isolation, attached or detached."""

    @pytest.mark.parametrize(
        "options",
        [
            {"timeout": 0}, {"timeout": -1}, {"timeout": 86_401}, {"timeout": float("nan")}, {"timeout": "5"},
            {"labels": "x"}, {"labels": ""}, {"labels": []}, {"labels": {"a b": "1"}},
            {"labels": {"a": 1}}, {"labels": dict.fromkeys(map(str, range(33)), "")},
            {"check": "most"}, {"check": ""}, {"check": 0}, {"priority": "urgent"}, {"priority": 0},
        ],
        ids=lambda options: str(options)[:24],
    )  # fmt: skip
    def test_a_bad_value_is_refused(
        self, store: Store, isolation: TransactionIsolation, begin: str, options: dict[str, Any]
    ) -> None:
        """With a `BadInput`, and nothing is begun."""
        with pytest.raises(BadInput):
            getattr(store, begin)(isolation=isolation, **options)
        assert store.reports.list_transactions() == []
        assert store.reports.list_transactions(ended=True) == []

    def test_the_deadline_holds(
        self, store: Store, clock: ManualClock, isolation: TransactionIsolation, begin: str
    ) -> None:
        """No way of beginning and no isolation leaves the timeout out of account."""
        txn = getattr(store, begin)(isolation=isolation, timeout=5)
        clock.advance(6)
        with pytest.raises(TransactionTimedOut):
            store.commit_transaction(txn)
