"""A transaction's handle alone: record, end, and the outcome of each batch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store, TransactionState, TxnID
from storage.client.work.handle import TransactionHandle
from storage.disk.view import WriteBatch
from storage.errors import TransactionNotOpen
from storage.txn import record as records
from storage.txn.record import TransactionRecord
from tests.row_json import row_json

NewHandle = Callable[[], TransactionHandle]
InterruptAt = Callable[[str], None]


def label(batch: WriteBatch, record: TransactionRecord) -> None:
    """A change that shows in the record."""
    record.messages += 1
    records.save(batch, record)


def count_of(store: Store, handle: TransactionHandle) -> int:
    with store.connection.view() as view:
        return records.get(view, handle.txn_id).messages


class TestRecord:
    """When a transaction is given a record."""

    def test_the_first_batch_makes_the_record(self, store: Store, new_handle: NewHandle) -> None:
        """And a handle that runs nothing leaves no trace."""
        handle, idle = new_handle(), new_handle()
        assert (handle.txn_id, row_json(store.reports.store_info())["transactions"]) == (0, 0)
        handle.run_batch(label)
        handle.run_batch(label)
        assert (handle.txn_id, count_of(store, handle)) == (1, 2)
        assert (idle.txn_id, idle.state, row_json(store.reports.store_info())["transactions"]) == (
            0,
            TransactionState.OPEN,
            1,
        )

    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_an_end_without_a_record_is_written_when_asked_for(
        self, store: Store, new_handle: NewHandle, end: str
    ) -> None:
        """The record is made and ended in one batch."""
        handle = new_handle()
        if end == "commit":
            assert handle.commit_without_record()
        else:
            handle.abort(None)
        before = row_json(store.reports.store_info())["commits"]
        handle.materialise()
        handle.materialise()
        shown = row_json(store.reports.show_transaction(TxnID(handle.txn_id)))
        assert (shown["state"], row_json(store.reports.store_info())["commits"] - before) == (
            handle.state.value,
            1,
        )

    def test_a_batch_after_an_end_is_refused(self, new_handle: NewHandle) -> None:
        """By a record that names the transaction."""
        handle = new_handle()
        handle.abort(None)
        with pytest.raises(TransactionNotOpen):
            handle.run_batch(label)
        assert handle.txn_id

    def test_a_record_says_that_tables_are_used_once_they_are(
        self, store: Store, new_handle: NewHandle
    ) -> None:
        """The next batch marks the record."""
        store.create_table("accounts")
        handle = new_handle()
        handle.run_batch(label)
        handle.uses_tables = True
        assert handle.is_mark_due
        handle.run_batch(label)
        assert not handle.is_mark_due


class TestDoubt:
    """An interrupt around the commit of a batch."""

    @pytest.mark.parametrize("has_record", [False, True])
    @pytest.mark.parametrize(
        ("point", "is_committed"),
        [
            ("environment.before_change", False),
            ("environment.before_commit", False),
            ("environment.after_commit", True),
        ],
    )
    def test_a_batch_is_settled_if_it_was_committed(
        self,
        store: Store,
        new_handle: NewHandle,
        interrupt_at: InterruptAt,
        point: str,
        is_committed: bool,
        has_record: bool,
    ) -> None:
        """Once, and the interrupt is raised all the same."""
        handle, settled, discarded = new_handle(), list[str](), list[str]()
        handle.on_discard = lambda: discarded.append("x")
        if has_record:
            handle.run_batch(label)
        interrupt_at(point)
        with pytest.raises(KeyboardInterrupt):
            handle.run_batch(label, lambda: settled.append("x"))
        handle.resolve()
        assert (len(settled), discarded) == (is_committed, [])
        assert bool(handle.txn_id) is (has_record or is_committed)
        handle.run_batch(label)
        assert count_of(store, handle) == 1 + is_committed + has_record

    def test_settling_that_is_interrupted_is_repeated(self, store: Store, new_handle: NewHandle) -> None:
        """Before anything else is done."""
        handle, calls = new_handle(), list[int]()

        def settle() -> None:
            calls.append(1)
            if len(calls) < 3:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            handle.run_batch(label, settle)
        assert len(calls) == 2
        handle.run_batch(label)
        assert (len(calls), count_of(store, handle)) == (3, 2)

    def test_a_transaction_that_was_ended_meanwhile_discards(
        self, store: Store, new_handle: NewHandle, interrupt_at: InterruptAt
    ) -> None:
        """The end counts as a write, and is not taken for the batch."""
        handle, events = new_handle(), list[str]()
        handle.on_discard = lambda: events.append("discarded")
        handle.run_batch(label)
        txn = TxnID(handle.txn_id)
        interrupt_at("environment.before_change")

        def change(batch: WriteBatch, record: TransactionRecord) -> None:
            label(batch, record)

        with pytest.raises(KeyboardInterrupt):
            handle.run_batch(change, lambda: events.append("settled"))
        assert events == []
        store.admin.transactions.abort_transaction(txn)
        with pytest.raises(TransactionNotOpen):
            handle.run_batch(change, lambda: events.append("settled"))
        assert events == ["discarded"]

    def test_a_number_that_went_to_another_transaction_is_not_adopted(
        self, store: Store, new_handle: NewHandle, interrupt_at: InterruptAt
    ) -> None:
        """The batch was lost, and its number was given out again before anybody looked."""
        handle = new_handle()
        real = handle.resolve
        handle.resolve = lambda: None  # type: ignore[method-assign]  # as if interrupted once more
        interrupt_at("environment.before_commit")
        with pytest.raises(KeyboardInterrupt):
            handle.run_batch(label)
        handle.resolve = real  # type: ignore[method-assign]
        foreign = store.begin_transaction()
        assert handle.state is TransactionState.OPEN
        assert (foreign.least, handle.txn_id) == (1, 0)
        handle.run_batch(label)
        assert handle.txn_id == 2

    @pytest.mark.parametrize("point", ["environment.before_commit", "environment.after_commit"])
    def test_an_interrupted_commit_is_repeated(
        self, store: Store, new_handle: NewHandle, interrupt_at: InterruptAt, point: str
    ) -> None:
        """The second one finishes the work, or finds it done; what is prepared is settled once."""
        handle, settled = new_handle(), list[str]()

        def commit() -> bool:
            return handle.commit_batch(lambda _, record: _count(record), lambda: settled.append("x")).already

        interrupt_at(point)
        with pytest.raises(KeyboardInterrupt):
            commit()
        assert commit() is (point == "environment.after_commit")
        assert (handle.state, settled, count_of(store, handle)) == (TransactionState.COMMITTED, ["x"], 1)

    def test_a_refused_abort_discards_nothing(self, new_handle: NewHandle, interrupt_at: InterruptAt) -> None:
        """And a repeated one discards, though the abort was committed before."""
        handle, discarded = new_handle(), list[str]()
        handle.on_discard = lambda: discarded.append("x")
        handle.run_batch(label)
        interrupt_at("environment.before_commit")
        with pytest.raises(KeyboardInterrupt):
            handle.abort(None)
        assert (handle.state, discarded) == (TransactionState.OPEN, [])
        interrupt_at("environment.after_commit")
        with pytest.raises(KeyboardInterrupt):
            handle.abort(None)
        assert (handle.state, discarded) == (TransactionState.ABORTED, ["x"])


def _count(record: TransactionRecord) -> None:
    record.messages += 1
