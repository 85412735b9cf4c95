"""`Store.run_transaction`: a function is run again in a new transaction until no conflict is lost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from storage import EARLIEST, Priority, Store, Table, Transaction, TransactionState
from storage.errors import (
    ConditionFailed,
    InvalidValue,
    LostConflict,
    RequestTooOld,
    TopicNotFound,
    WriteTooOld,
)
from storage.process.clock import ManualClock


@pytest.fixture
def table(store: Store) -> Table:
    store.create_table("accounts")
    return store.table("accounts")


def read_later(store: Store, table: Table) -> None:
    """A later transaction reads the key: every older writer of the key is refused."""
    with store.transaction() as reader:
        table.get(b"n", txn=reader)


class Counter:
    """Increments a key, and loses the first conflicts.

    Attributes:
        tries: the transactions of all tries.
    """

    def __init__(self, store: Store, table: Table, losses: int) -> None:
        self._store = store
        self._table = table
        self._losses = losses
        self.tries: list[Transaction] = []

    def __call__(self, txn: Transaction) -> int:
        self.tries.append(txn)
        count = int(self._table.get(b"n", txn=txn) or 0) + 1
        if len(self.tries) <= self._losses:
            read_later(self._store, self._table)
        self._table.put(b"n", b"%d" % count, txn=txn)
        return count


def test_the_result_is_that_of_the_function_and_the_work_is_committed(store: Store, table: Table) -> None:
    """Without a conflict there is one try."""
    assert [store.run_transaction(Counter(store, table, 0)) for _ in range(3)] == [1, 2, 3]
    assert table.get(b"n") == b"3"


def test_a_lost_try_is_run_again_in_a_new_transaction(store: Store, table: Table) -> None:
    """The priority rises with each loss; of the lost tries nothing is left."""
    counter = Counter(store, table, 3)
    assert store.run_transaction(counter, labels={"job": "count"}) == 1
    assert [txn.priority.value for txn in counter.tries] == ["medium", "high", "highest", "highest"]
    assert [txn.state for txn in counter.tries[:3]] == [TransactionState.ABORTED] * 3
    assert len({txn.timestamp for txn in counter.tries}) == 4
    assert table.get(b"n") == b"1"


def test_the_wait_is_a_share_of_a_growing_span(
    store: Store, table: Table, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the longest share, of tries that last no time: 40 ms, 80 ms, 160 ms."""
    waits: list[float] = []
    monkeypatch.setattr("storage.process.chance.share", lambda: 1.0)
    monkeypatch.setattr(ManualClock, "sleep", lambda _, seconds: waits.append(seconds))
    store.run_transaction(Counter(store, table, 3))
    assert waits == pytest.approx([0.04, 0.08, 0.16])


@pytest.mark.parametrize("retries", [0, 2])
def test_the_error_after_the_last_try_is_that_of_the_last_try(
    store: Store, table: Table, retries: int
) -> None:
    """One try more than retries."""
    counter = Counter(store, table, 9)
    with pytest.raises(WriteTooOld) as raised:
        store.run_transaction(counter, retries=retries)
    assert len(counter.tries) == retries + 1
    assert raised.value.details["transaction"] == str(counter.tries[-1].known_id)
    assert ("run_transaction" in (raised.value.hint or "")) is (retries == 0), (
        "no advice that was followed already"
    )


def test_a_push_that_was_lost_is_tried_again(store: Store, table: Table) -> None:
    """A holder of a higher priority wins until the priority of the tries has reached its own."""
    holder = store.begin_transaction(priority="high")
    table.put(b"n", b"held", txn=holder)
    priorities: list[Priority] = []

    def write(txn: Transaction) -> None:
        priorities.append(txn.priority)
        table.put(b"n", b"mine", txn=txn)
        txn.flush()

    store.run_transaction(write)
    assert priorities == [Priority.MEDIUM, Priority.HIGH]
    assert table.get(b"n") == b"mine"


def test_a_conflict_that_the_function_hides_is_found_at_the_commit(store: Store, table: Table) -> None:
    """The commit of a doomed transaction is refused, and all of it runs again."""
    tries: list[Transaction] = []

    def write(txn: Transaction) -> None:
        tries.append(txn)
        table.get(b"n", txn=txn)
        if len(tries) == 1:
            read_later(store, table)
        table.put(b"n", b"%d" % len(tries), txn=txn)
        with suppress(WriteTooOld):
            txn.flush()

    store.run_transaction(write)
    assert (len(tries), table.get(b"n")) == (2, b"2")


class TestNoFurtherTry:
    """Any different exception aborts the transaction, and is raised at once."""

    def run(self, store: Store, function: Any, error: type[Exception], **options: Any) -> list[Transaction]:
        tries: list[Transaction] = []

        def noting(txn: Transaction) -> None:
            tries.append(txn)
            function(txn)

        with pytest.raises(error):
            store.run_transaction(noting, **options)
        return tries

    def test_after_an_exception_of_the_function(self, store: Store, table: Table) -> None:
        def fail(txn: Transaction) -> None:
            table.put(b"n", b"1", txn=txn)
            raise KeyError

        assert len(self.run(store, fail, KeyError)) == 1
        assert table.get(b"n") is None

    def test_after_a_condition_that_failed(self, store: Store, table: Table) -> None:
        table.put(b"n", b"1")
        absent = self.run(store, lambda txn: table.put(b"n", b"2", txn=txn, if_absent=True), ConditionFailed)
        assert [txn.state for txn in absent] == [TransactionState.ABORTED]

    def test_after_an_error_of_a_topic(self, store: Store, table: Table) -> None:
        assert len(self.run(store, lambda _: store.create_producer("none"), TopicNotFound)) == 1

    def test_after_a_conflict_of_a_different_transaction(self, store: Store, table: Table) -> None:
        """The transaction of the try has lost nothing."""

        def lose_elsewhere(txn: Transaction) -> None:
            older = store.transaction()
            table.get(b"n", txn=older)
            read_later(store, table)
            table.put(b"n", b"1", txn=older)
            older.commit()

        assert len(self.run(store, lose_elsewhere, WriteTooOld)) == 1

    def test_after_the_age_of_a_transaction(self, store: Store, table: Table, clock: ManualClock) -> None:
        """A repetition takes as long."""
        store.admin.settings.set_table_retention(60_000)

        def dawdle(txn: Transaction) -> None:
            table.get(b"n", txn=txn)
            clock.advance(120)
            table.put(b"other", b"1", txn=txn)

        assert len(self.run(store, dawdle, RequestTooOld)) == 1

    def test_after_an_abort_by_an_operator(self, store: Store, table: Table) -> None:
        def aborted(txn: Transaction) -> None:
            store.admin.transactions.abort_transaction(txn.id, force=True)
            table.put(b"n", b"1", txn=txn)

        assert len(self.run(store, aborted, Exception)) == 1

    @pytest.mark.parametrize("retries", [-1, 1.5, True, "3"])
    def test_after_a_number_of_retries_that_is_none(self, store: Store, table: Table, retries: Any) -> None:
        assert self.run(store, lambda _: None, InvalidValue, retries=retries) == []


def test_what_is_received_is_received_before_each_try(store: Store, table: Table) -> None:
    """Messages acknowledged in a lost try come again to the next one, whose transaction is newer than the messages."""
    requests = store.create_producer("requests", create_topic=True)
    consumer = store.subscribe("requests", "settle", initial_position=EARLIEST)
    requests.send_batch([b"1", b"2"])
    values: list[list[bytes | None]] = []

    def settle(txn: Transaction, messages: Any) -> int:
        values.append([message.value for message in messages])
        consumer.acknowledge(messages, txn=txn)
        total = int(table.get(b"n", txn=txn) or 0) + sum(int(message.value) for message in messages)
        if len(values) == 1:
            read_later(store, table)
        table.put(b"n", b"%d" % total, txn=txn)
        return total

    assert store.run_transaction(settle, receive=lambda: consumer.receive_batch(10, timeout=0)) == 3
    assert values == [[b"1", b"2"]] * 2
    assert len(consumer.receive_batch(10, timeout=0)) == 0


def test_a_read_committed_transaction_is_tried_once(store: Store, table: Table) -> None:
    """Such a one conflicts with nothing."""
    table.put(b"n", b"5")
    value = store.run_transaction(
        lambda txn: table.get(b"n", txn=txn), isolation="read-committed", check="full"
    )
    assert value == b"5"


def test_the_last_error_of_a_push_names_the_winner(store: Store, table: Table) -> None:
    """`LostConflict`, as without retries."""
    holder = store.begin_transaction(priority="highest")
    table.put(b"n", b"held", txn=holder)

    def write(txn: Transaction) -> None:
        table.put(b"n", b"mine", txn=txn)

    with pytest.raises(LostConflict) as raised:
        store.run_transaction(write, retries=1, priority="low")
    assert raised.value.details["winner"] == str(holder)
