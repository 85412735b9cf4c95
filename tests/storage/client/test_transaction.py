"""A transaction as a context manager."""

from __future__ import annotations

import pytest

from storage import Store, TransactionState, TxnID, faults
from storage.client.transaction import Transaction
from storage.errors import StoreClosed, TransactionNotOpen, TransactionTimedOut, WriterBusy
from storage.process.clock import ManualClock
from storage.process.lock_file import LockFile
from tests.row_json import row_json


class TestReadCommitted:
    """One that only reads ends in this process alone, and once."""

    @pytest.mark.parametrize(("first", "other"), [("commit", "abort"), ("abort", "commit")])
    def test_what_has_ended_does_not_end_otherwise(self, store: Store, first: str, other: str) -> None:
        """Repeating is fine; asking for the other, or reading in it, is an error that says how it ended."""
        store.create_table("accounts")
        txn = store.transaction(isolation="read-committed")
        getattr(txn, first)()
        getattr(txn, first)()
        state = txn.state
        for call in (getattr(txn, other), lambda: store.table("accounts").get(b"k", txn=txn)):
            with pytest.raises(TransactionNotOpen, match=state.value.lower()) as raised:
                call()
            assert raised.value.details["state"] == state.value
        assert txn.state is state

    def test_it_has_no_number(self, store: Store) -> None:
        """Also when somebody only wants to know whether it has."""
        assert store.transaction(isolation="read-committed").known_id is None


def test_the_number_is_told_after_the_close(path: str) -> None:
    """It is what asks for the outcome; a transaction without a number has none to tell."""
    with Store.open(path) as store:
        store.create_topic("orders")
        producer, txn, unused = store.create_producer("orders"), store.transaction(), store.transaction()
        producer.send(b"stored", txn=txn)
        number = txn.id
        other = store.transaction()
        producer.send(b"committed", txn=other)
        other.commit()
    assert txn.id == number
    with pytest.raises(StoreClosed):
        assert unused.id
    with Store.open(path) as store:
        assert store.reports.show_transaction(other.id).row.state is TransactionState.COMMITTED
        assert store.reports.show_transaction(txn.id).row.state is TransactionState.OPEN


def test_asking_for_a_number_that_is_not_there_writes_nothing(store: Store) -> None:
    """And the one that is there is told."""
    before = row_json(store.reports.store_info())["commits"]
    txn = store.transaction()
    assert (txn.known_id, row_json(store.reports.store_info())["commits"]) == (None, before)
    assert txn.id == txn.known_id


def test_the_oldest_comes_first_whatever_its_number(store: Store, clock: ManualClock) -> None:
    """An attached transaction is given its number when it needs one, maybe long after it began."""
    attached = store.transaction()
    clock.advance(30)
    detached = store.begin_transaction()
    assert detached.least < attached.number
    assert [row["txnId"] for row in row_json(store.reports.list_transactions())] == [
        str(attached.id),
        str(detached),
    ]
    assert row_json(store.reports.store_overview())["transactions"]["oldest"]["txnId"] == str(attached.id)
    assert [row["txnId"] for row in row_json(store.reports.list_slow_transactions(0))] == [
        str(attached.id),
        str(detached),
    ]


def _begin(store: Store, kind: str) -> Transaction | TxnID:
    """A transaction that writes nothing: attached, attached with a number or a read of a table, or detached."""
    if kind == "detached":
        return store.begin_transaction()
    if kind == "read-committed":
        return store.transaction(isolation="read-committed")
    txn = store.transaction()
    if kind == "numbered":
        assert txn.id
    if kind == "reading":
        store.create_table("accounts")
        assert store.table("accounts").get(b"k", txn=txn) is None
    return txn


class TestRepeatedEnd:
    """An end of a transaction that wrote nothing decides it like any other (semantics section 3)."""

    @pytest.mark.parametrize("kind", ["attached", "numbered", "reading", "detached", "read-committed"])
    def test_a_repeated_commit_says_that_it_happened_before(self, store: Store, kind: str) -> None:
        """The first commit is True, each further one False."""
        txn = _begin(store, kind)
        assert [store.commit_transaction(txn) for _ in range(3)] == [True, False, False]

    @pytest.mark.parametrize("kind", ["attached", "numbered", "reading"])
    @pytest.mark.parametrize("door", ["method", "block", "group", "number"])
    def test_whichever_door_came_first(self, store: Store, kind: str, door: str) -> None:
        """A commit by the method, the end of a block, a group or the number is known to every other door."""
        txn = _begin(store, kind)
        assert isinstance(txn, Transaction)
        if door == "method":
            txn.commit()
        elif door == "block":
            with txn:
                pass
        elif door == "group":
            with store.group():
                txn.commit()
        else:
            assert store.commit_transaction(txn.id)
        assert not store.commit_transaction(txn)
        txn.commit()
        assert not store.commit_transaction(txn.id)
        with pytest.raises(TransactionNotOpen):
            store.admin.transactions.abort_transaction(txn)

    @pytest.mark.parametrize("kind", ["attached", "numbered", "reading", "detached"])
    @pytest.mark.parametrize("door", ["method", "admin"])
    def test_a_repeated_abort_says_that_it_happened_before(self, store: Store, kind: str, door: str) -> None:
        """The first abort is the one that changes the state, each further one has `already`; a commit is refused."""
        txn = _begin(store, kind)
        if door == "method" and isinstance(txn, Transaction):
            txn.abort()
        else:
            assert not store.admin.transactions.abort_transaction(txn).already
        assert store.admin.transactions.abort_transaction(txn).already
        with pytest.raises(TransactionNotOpen):
            store.commit_transaction(txn)


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
        shown = row_json(store.reports.show_transaction(caught.value.args[0]))
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
                store.admin.transactions.abort_transaction(txn.id)

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

    def test_an_interrupt_is_raised_although_the_store_is_too_busy_to_abort(
        self, path: str, store: Store, clock: ManualClock
    ) -> None:
        """Who presses Ctrl-C, in the block or at its end, is not told of a lock; a program that fails is."""
        holder = LockFile(f"{path}/store.lock", clock, writable=True)
        with Store.open(path, clock=clock, lock_timeout=0.05) as impatient:
            txn = impatient.transaction()
            impatient.create_producer("t").send(b"x", txn=txn)
            txn.flush()

            def interrupt() -> None:
                faults.disarm()
                impatient.connection.environment.locks.gate.leave()
                holder.gate.enter(0, None)
                raise KeyboardInterrupt

            faults.arm("environment.before_change", interrupt)
            with pytest.raises(KeyboardInterrupt), txn:
                pass
            assert txn.state is TransactionState.OPEN
            with pytest.raises(KeyboardInterrupt), txn:
                raise KeyboardInterrupt
            with pytest.raises(WriterBusy), txn:
                raise KeyError
            assert txn.state is TransactionState.OPEN
            holder.gate.leave()
        holder.close()

    def test_several_at_once_do_not_mix(self, store: Store) -> None:
        """Messages belong to the transaction that each send names."""
        producer = store.create_producer("t")
        one, two = store.transaction(), store.transaction()
        for number, txn in enumerate((one, two, one, two)):
            producer.send(b"%d" % number, txn=txn)
        two.commit()
        one.abort()
        assert [message.value for message in store.reader("t")] == [b"1", b"3"]
