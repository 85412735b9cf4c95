"""A transaction as a context manager."""

from __future__ import annotations

import pytest

from storage import Store, TransactionState
from storage.clock import ManualClock
from storage.errors import TransactionNotOpen, TransactionTimedOut


class TestWith:
    """Commit on success, abort on exception."""

    def test_the_end_of_the_block_commits(self, store: Store) -> None:
        """What was sent in the block is visible after it."""
        with store.transaction() as txn:
            store.create_producer("t").send(b"x", txn=txn)
            assert txn.state is TransactionState.OPEN
        assert txn.state is TransactionState.COMMITTED
        assert [message.value for message in store.reader("t")] == [b"x"]

    def test_an_exception_aborts_and_goes_on(self, store: Store) -> None:
        """The exception reaches the caller; the abort names it."""

        def fail() -> None:
            with store.transaction() as txn:
                store.create_producer("t").send(b"x", txn=txn)
                raise KeyError(str(txn.id))

        with pytest.raises(KeyError) as caught:
            fail()
        shown = store.show_transaction(caught.value.args[0])
        assert (shown["state"], shown["reason"]) == ("ABORTED", "asked")
        assert "KeyError" in shown["reasonText"]
        assert list(store.reader("t")) == []

    def test_an_interruption_aborts_too(self, store: Store) -> None:
        """Ctrl-C in the block is no success."""
        txn = store.transaction()

        def interrupted() -> None:
            with txn:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert txn.state is TransactionState.ABORTED

    @pytest.mark.parametrize(
        ("end", "state"), [("commit", TransactionState.COMMITTED), ("abort", TransactionState.ABORTED)]
    )
    def test_the_block_may_end_it_itself(self, store: Store, end: str, state: TransactionState) -> None:
        """An end that the block asked for is the end."""
        with store.transaction() as txn:
            getattr(txn, end)()
        assert txn.state is state

    def test_an_exception_after_a_commit_does_not_undo_it(self, store: Store) -> None:
        """A decided state never changes, and the exception is not hidden."""
        txn = store.transaction()

        def fail() -> None:
            with txn:
                txn.commit()
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        assert txn.state is TransactionState.COMMITTED

    def test_an_abort_by_somebody_else_is_reported(self, store: Store) -> None:
        """A block whose transaction was aborted meanwhile does not end as if it were committed."""
        txn = store.transaction()

        def run() -> None:
            with txn:
                store.abort(txn.id)

        with pytest.raises(TransactionNotOpen):
            run()

    def test_a_late_end_of_the_block_is_reported(self, store: Store, clock: ManualClock) -> None:
        """A block that took longer than the deadline raises, and nothing of it shows."""

        def run() -> None:
            with store.transaction(timeout=10) as txn:
                store.create_producer("t").send(b"x", txn=txn)
                clock.advance(11)

        with pytest.raises(TransactionTimedOut):
            run()
        assert list(store.reader("t")) == []

    def test_several_at_once_do_not_mix(self, store: Store) -> None:
        """Messages belong to the transaction that each send names."""
        producer = store.create_producer("t")
        one, two = store.transaction(), store.transaction()
        for number, txn in enumerate((one, two, one, two)):
            producer.send(b"%d" % number, txn=txn)
        two.commit()
        one.abort()
        assert [message.value for message in store.reader("t")] == [b"1", b"3"]
