"""One transaction over topics, acknowledgements and tables: all of it or nothing (invariant 6), and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, Store, SubscriptionType, Table, Transaction, TxnID
from storage.errors import (
    LostConflict,
    NotDeliverable,
    RequestTooOld,
    TransactionNotOpen,
    WriteTooOld,
)  # fmt: skip
from storage.limits import PAGE_ENTRIES
from storage.subscription import message_bound
from tests.row_json import row_json


@pytest.fixture
def consumer(store: Store, table: Table) -> Iterator[Consumer]:
    """Attached to `requests`, which has two messages; `results` is there as well."""
    store.create_topic("requests")
    store.create_topic("results")
    store.create_producer("requests").send_batch([b"+5", b"+7"])
    with store.subscribe(
        "requests", "settlement", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
    ) as opened:
        yield opened


def settle(store: Store, table: Table, consumer: Consumer, txn: Transaction | TxnID) -> None:
    """Consume one request, change the account, say so, acknowledge."""
    message = consumer.receive(timeout=0, txn=txn)
    balance = int(table.get(b"B", txn=txn) or b"0") + int(message.value or b"")
    table.put(b"B", b"%d" % balance, txn=txn)
    store.create_producer("results").send(b"%d" % balance, txn=txn)
    consumer.acknowledge(message, txn=txn)


def shown(store: Store, table: Table) -> tuple[bytes | None, list[bytes | None], int]:
    """What others see: the balance, the results, and how many requests are acknowledged or pending."""
    results = [message.value for message in store.reader("results")]
    stats = row_json(store.reports.subscription_stats("requests", "settlement"))
    return table.get(b"B"), results, stats["visible"]


@pytest.fixture(params=["attached", "detached"])
def begin(request: pytest.FixtureRequest, store: Store) -> Callable[[], Transaction | TxnID]:
    """Begins a transaction of either kind."""
    return store.transaction if request.param == "attached" else store.begin_transaction


def test_a_commit_shows_everything_at_one_instant(
    store: Store, table: Table, consumer: Consumer, begin: Callable[[], Transaction | TxnID]
) -> None:
    """Nothing of it before, all of it after."""
    txn = begin()
    settle(store, table, consumer, txn)
    assert shown(store, table) == (None, [], 1)
    store.commit_transaction(txn)
    assert shown(store, table) == (b"5", [b"5"], 1)
    kinds = {part["kind"] for part in row_json(store.reports.show_transaction(txn))["parts"]}
    assert kinds == {"topic", "subscription", "table"}
    again = begin()
    settle(store, table, consumer, again)
    store.commit_transaction(again)
    assert shown(store, table) == (b"12", [b"5", b"12"], 0)


def test_an_abort_drops_everything(
    store: Store, table: Table, consumer: Consumer, begin: Callable[[], Transaction | TxnID]
) -> None:
    """The request comes again, the balance and the results are as before."""
    txn = begin()
    settle(store, table, consumer, txn)
    store.admin.transactions.abort_transaction(txn)
    assert shown(store, table) == (None, [], 2)


def test_a_lost_conflict_drops_messages_and_acknowledgements_too(
    store: Store, table: Table, consumer: Consumer
) -> None:
    """The doom is complete: no later operation or commit succeeds (invariant 17)."""
    txn = store.begin_transaction()
    settle(store, table, consumer, txn)
    table.put(b"B", b"1000", txn=(winner := store.begin_transaction()))
    store.commit_transaction(winner)
    for action in (
        lambda: store.create_producer("results").send(b"x", txn=txn),
        lambda: table.get(b"B", txn=txn),
        lambda: store.commit_transaction(txn),
    ):
        with pytest.raises(LostConflict):
            action()
    assert shown(store, table) == (b"1000", [], 2)


def test_a_refused_write_at_commit_drops_messages_too(store: Store, table: Table, consumer: Consumer) -> None:
    """The conflict of a buffered put is found in the store transaction of the commit, and dooms it there."""
    txn = store.transaction()
    settle(store, table, consumer, txn)
    table.put(b"B", b"1000")
    with pytest.raises(WriteTooOld):
        txn.commit()
    assert shown(store, table) == (b"1000", [], 2)
    with pytest.raises(TransactionNotOpen):
        txn.commit()


class TestOrder:
    """Once it has used a table, it is handed only what was there before it began."""

    def test_a_newer_message_is_not_handed_to_it(
        self, store: Store, table: Table, consumer: Consumer, begin: Callable[[], Transaction | TxnID]
    ) -> None:
        """It stays with the consumer, and comes in the next transaction."""
        txn = begin()
        table.get(b"B", txn=txn)
        store.create_producer("requests").send(b"+9")
        assert [m.value for m in consumer.receive_batch(10, 0, txn=txn)] == [b"+5", b"+7"]
        assert list(consumer.receive_batch(10, 0, txn=txn)) == []
        store.commit_transaction(txn)
        with store.transaction() as following:
            table.get(b"B", txn=following)
            assert consumer.receive(timeout=0, txn=following).value == b"+9"

    def test_a_newer_message_is_told_from_the_end(
        self, store: Store, table: Table, consumer: Consumer, begin: Callable[[], Transaction | TxnID]
    ) -> None:
        """Only while one is next, and only for a transaction that has used a table."""
        txn, producer = begin(), store.create_producer("requests")
        producer.send(b"+9")
        assert not consumer.next_is_newer_than(txn)
        table.get(b"B", txn=txn)
        assert not consumer.next_is_newer_than(txn)
        assert len(consumer.receive_batch(10, 0, txn=txn)) == 2
        assert consumer.next_is_newer_than(txn)
        store.commit_transaction(txn)
        following = begin()
        table.get(b"B", txn=following)
        assert not consumer.next_is_newer_than(following)
        assert consumer.receive(timeout=0, txn=following).value == b"+9"
        assert not consumer.next_is_newer_than(following)

    def test_a_message_committed_after_it_began_is_newer(
        self, store: Store, table: Table, consumer: Consumer
    ) -> None:
        """Though it was written before."""
        writer = store.begin_transaction()
        store.create_producer("requests").send(b"+9", txn=writer)
        txn = store.begin_transaction()
        table.get(b"B", txn=txn)
        store.commit_transaction(writer)
        assert len(consumer.receive_batch(10, 0, txn=txn)) == 2
        assert list(consumer.receive_batch(10, 0, txn=txn)) == []
        newer = consumer.receive(timeout=0)
        with pytest.raises(NotDeliverable):
            consumer.acknowledge(newer, txn=txn)
        store.commit_transaction(txn)

    def test_an_uncommitted_message_is_not_handed_to_it(self, store: Store, table: Table) -> None:
        """At READ_UNCOMMITTED neither: nobody knows yet when it will have been."""
        with store.subscribe(
            "t",
            "dirty",
            subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED,
            initial_position=EARLIEST,
        ) as dirty:
            store.create_producer("t").send(b"open", txn=store.begin_transaction())
            with store.transaction() as txn:
                table.get(b"k", txn=txn)
                assert list(dirty.receive_batch(1, 0, txn=txn)) == []

    def test_having_consumed_a_newer_one_it_cannot_begin_with_tables(
        self, store: Store, table: Table, consumer: Consumer, begin: Callable[[], Transaction | TxnID]
    ) -> None:
        """Its first operation on a table is refused, and dooms it."""
        for use in (
            lambda txn: table.get(b"B", txn=txn),
            lambda txn: table.put(b"B", b"1", txn=txn),
            lambda txn: list(table.scan(txn=txn)),
        ):
            txn = begin()
            store.create_producer("requests").send(b"+9")
            message = consumer.receive_batch(10, 0)[-1]
            consumer.acknowledge(message, txn=txn)
            with pytest.raises(RequestTooOld):
                use(txn)
            with pytest.raises(TransactionNotOpen):
                store.commit_transaction(txn)

    def test_a_cumulative_acknowledgement_counts_all_that_it_covers(self, store: Store, table: Table) -> None:
        """The newest of them decides, wherever it lies."""
        producer = store.create_producer("t")
        with store.subscribe("t", "s", initial_position=EARLIEST) as ordered:
            writer = store.begin_transaction()
            producer.send(b"late", txn=writer)
            producer.send(b"plain")
            txn = store.begin_transaction()
            store.commit_transaction(writer)
            messages = ordered.receive_batch(2, 0)
            ordered.acknowledge_cumulative(messages[-1], txn=txn)
            with pytest.raises(RequestTooOld):
                table.get(b"k", txn=txn)
            after = store.begin_transaction()
            messages = ordered.receive_batch(2, 0)
            ordered.acknowledge_cumulative(messages[-1], txn=after)
            table.put(b"k", b"v", txn=after)
            store.commit_transaction(after)

    def test_a_long_cumulative_acknowledgement_lets_nothing_newer_pass(
        self, store: Store, table: Table, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """More entries than are looked at at once: refused if a table was used, and in steps as far as they are old."""
        monkeypatch.setattr(message_bound, "RANGE_ENTRIES_MAX", PAGE_ENTRIES)
        producer, count = store.create_producer("t"), 2 * PAGE_ENTRIES + 10
        for _ in range(count):
            producer.send(b"old")
        txn, careless = store.begin_transaction(), store.begin_transaction()
        table.get(b"k", txn=txn)
        producer.send(b"new")
        with store.subscribe("t", "s", initial_position=EARLIEST, receiver_queue_size=5000) as ordered:
            messages = [message for _ in range(4) for message in ordered.receive_batch(5000, 0)]
            assert len(messages) == count + 1
            with pytest.raises(NotDeliverable, match="at once"):
                ordered.acknowledge_cumulative(messages[-2], txn=txn)
            for at in (PAGE_ENTRIES, count - 1):
                ordered.acknowledge_cumulative(messages[at], txn=txn)
            with pytest.raises(NotDeliverable, match="was not there to be read"):
                ordered.acknowledge_cumulative(messages[-1], txn=txn)
            store.commit_transaction(txn)
            assert row_json(store.reports.subscription_stats("t", "s"))["visible"] == 1
            ordered.acknowledge_cumulative(messages[-1], txn=careless)
            with pytest.raises(RequestTooOld):
                table.get(b"k", txn=careless)

    def test_an_aborted_message_under_a_cumulative_acknowledgement_is_no_matter(
        self, store: Store, table: Table
    ) -> None:
        """It was handed to nobody."""
        producer = store.create_producer("t")
        with store.subscribe("t", "s", initial_position=EARLIEST) as ordered:
            dropped = store.begin_transaction()
            producer.send(b"dropped", txn=dropped)
            store.admin.transactions.abort_transaction(dropped)
            producer.send(b"plain")
            with store.transaction() as txn:
                table.put(b"k", b"v", txn=txn)
                ordered.acknowledge_cumulative(ordered.receive(timeout=0, txn=txn), txn=txn)
        assert (table.get(b"k"), row_json(store.reports.subscription_stats("t", "s"))["visible"]) == (b"v", 0)

    def test_without_tables_it_consumes_whatever_comes(
        self, store: Store, table: Table, consumer: Consumer
    ) -> None:
        """The rule is for those who use both."""
        txn = store.begin_transaction()
        store.create_producer("requests").send(b"+9")
        consumer.acknowledge(consumer.receive_batch(10, 0, txn=txn), txn=txn)
        store.commit_transaction(txn)
        assert row_json(store.reports.subscription_stats("requests", "settlement"))["visible"] == 0
