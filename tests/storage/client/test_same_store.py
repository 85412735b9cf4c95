"""Objects of two stores do not mix: `storage/client/same_store.py`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Store, Transaction, TransactionState
from storage.errors import InvalidValue, MessageNotFound, StoreClosed, TransactionNotOpen
from storage.process.clock import ManualClock
from storage.topic.batching import entries_of
from storage.topic.entry import Columns
from tests.row_json import row_json
from tests.storage.conftest import check_whole

MIXED = "belongs to the store"


class Side:
    """One of two stores that are set up alike, so that all numbers coincide."""

    def __init__(self, store: Store) -> None:
        self.store = store
        store.create_topic("u")
        store.create_table("rows")
        self.producer = store.create_producer("t", producer_name="p")
        self.producer.send_batch([b"1", b"2", b"3"])
        self.consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        self.received = self.consumer.receive_batch(3, 0)
        self.reader = store.reader("t")
        self.reader.read_next(0)
        self.table = store.table("rows")
        self.txn = store.transaction()
        self.number = self.txn.id

    @property
    def commits(self) -> int:
        """The commits of the store so far."""
        return self.store.reports.store_info().commits


@pytest.fixture
def ours(store: Store) -> Side:
    """The store whose objects are used."""
    return Side(store)


@pytest.fixture
def theirs(tmp_path: Path, clock: ManualClock) -> Iterator[Side]:
    """The store that a transaction or a message is of; verified at the end."""
    path = str(tmp_path / "theirs")
    Store.create(path, clock=clock)
    with Store.open(path, clock=clock) as opened:
        opened.create_topic("t")
        yield Side(opened)
    check_whole(path, clock)


USES: dict[str, Callable[[Side, Transaction], object]] = {
    "send": lambda side, txn: side.producer.send(b"x", txn=txn),
    "send_batch": lambda side, txn: side.producer.send_batch([b"x"], keys=["k"], txn=txn),
    "send_packed": lambda side, txn: side.producer.send_packed(entries_of(Columns([b"x"])), txn=txn),
    "receive": lambda side, txn: side.consumer.receive_batch(1, 0, txn=txn),
    "next_is_newer_than": lambda side, txn: side.consumer.next_is_newer_than(txn),
    "acknowledge": lambda side, txn: side.consumer.acknowledge(side.received, txn=txn),
    "acknowledge_cumulative": lambda side, txn: side.consumer.acknowledge_cumulative(
        side.received[0], txn=txn
    ),
    "put": lambda side, txn: side.table.put(b"k", b"v", txn=txn),
    "delete": lambda side, txn: side.table.delete(b"k", txn=txn),
    "import_rows": lambda side, txn: side.table.import_rows([(b"k", b"v")], txn=txn),
    "get": lambda side, txn: side.table.get(b"k", txn=txn),
    "get_row": lambda side, txn: side.table.get_row(b"k", txn=txn),
    "scan": lambda side, txn: list(side.table.scan(txn=txn)),
    "create_producer": lambda side, txn: side.store.create_producer("t", txn=txn),
    "open_session": lambda side, txn: side.store.open_session("u", txn=txn),
    "use": lambda side, txn: side.store.use_transaction(txn),
    "commit": lambda side, txn: side.store.commit_transaction(txn),
    "abort": lambda side, txn: side.store.admin.transactions.abort_transaction(txn),
    "admin acknowledge": lambda side, txn: side.store.admin.acknowledgements.acknowledge_messages(
        "t", "s", [side.received[0].message_id], txn=txn
    ),
    "show": lambda side, txn: side.store.reports.show_transaction(txn),
    "explain": lambda side, txn: side.store.reports.explain_transaction(txn),
    "wait": lambda side, txn: side.store.reports.wait_for_transaction(txn, 0),
}


class TestTransactions:
    """A transaction is used with objects of its own store."""

    @pytest.mark.parametrize("use", USES.values(), ids=USES)
    def test_a_transaction_of_a_different_store_is_refused(
        self, ours: Side, theirs: Side, use: Callable[[Side, Transaction], object]
    ) -> None:
        """Before anything is written, though both stores have a transaction of the number."""
        assert ours.number == theirs.number
        without_record = theirs.store.transaction()
        before = ours.commits, theirs.commits
        for txn in (theirs.txn, without_record):
            with pytest.raises(InvalidValue, match=MIXED):
                use(ours, txn)
        assert (ours.commits, theirs.commits) == before
        assert ours.txn.state is theirs.txn.state is TransactionState.OPEN

    @pytest.mark.parametrize("name", ["get", "get_row", "scan"])
    def test_a_read_committed_transaction_of_a_different_store_is_refused(
        self, ours: Side, theirs: Side, name: str
    ) -> None:
        """Its start and check mode mean its own store."""
        with pytest.raises(InvalidValue, match=MIXED):
            USES[name](ours, theirs.store.transaction(isolation="read-committed"))

    def test_a_refused_send_leaves_buffered_messages_buffered(self, ours: Side, theirs: Side) -> None:
        """A producer stays in its own transaction."""
        txn = ours.store.transaction()
        ours.producer.send(b"mine", txn=txn)
        for name in ("send", "send_packed"):
            with pytest.raises(InvalidValue, match=MIXED):
                USES[name](ours, theirs.txn)
        assert txn.known_id is None
        txn.commit()
        assert [message.value for message in ours.store.reader("t")][-1] == b"mine"

    def test_a_bare_number_means_the_store_that_it_is_given_to(self, ours: Side, theirs: Side) -> None:
        """As a `TxnID` and as text."""
        ours.producer.send(b"x", txn=theirs.number)
        ours.table.put(b"k", b"v", txn=str(theirs.number))
        ours.store.commit_transaction(theirs.number)
        assert ours.table.get(b"k") == b"v"
        assert theirs.txn.state is TransactionState.OPEN

    def test_a_former_store_at_the_path_is_a_different_one(self, path: str, clock: ManualClock) -> None:
        """The files were removed, and a store created anew: nothing of the former is used with the new one."""
        with Store.open(path, clock=clock) as former:
            former.create_topic("t")
            side = Side(former)
        shutil.rmtree(path)
        Store.create(path, clock=clock)
        with Store.open(path, clock=clock) as opened:
            opened.create_topic("t")
            new = Side(opened)
            with pytest.raises(InvalidValue, match="a former store"):
                new.producer.send(b"x", txn=side.txn)
            with pytest.raises(InvalidValue, match="a former store"):
                new.consumer.acknowledge(side.received)

    def test_two_handles_of_one_store_are_one_store(self, ours: Side, path: str, clock: ManualClock) -> None:
        """A transaction of one handle covers messages, rows and acknowledgements through the other."""
        with Store.open(path, clock=clock) as second:
            txn = second.transaction()
            ours.producer.send(b"x", txn=txn)
            ours.table.put(b"k", b"v", txn=txn)
            ours.consumer.acknowledge(ours.received, txn=txn)
            assert ours.table.get(b"k", txn=txn) == b"v"
            assert ours.store.commit_transaction(txn)
            reader = second.transaction(isolation="read-committed")
            assert ours.table.get(b"k", txn=reader) == b"v"
            assert [row.key for row in ours.table.scan(txn=reader)] == [b"k"]


class TestMessages:
    """A message is acknowledged on the topic that it was received from."""

    def acknowledge_each_way(self, consumer: Side, side: Side) -> None:
        """Acknowledge, and give back, messages of one side by the consumer of another."""
        batch, messages = side.received, list(side.received)
        for action in (
            lambda: consumer.consumer.acknowledge(batch),
            lambda: consumer.consumer.acknowledge(batch[1:]),
            lambda: consumer.consumer.acknowledge(messages),
            lambda: consumer.consumer.acknowledge(messages[0]),
            lambda: consumer.consumer.acknowledge([consumer.received[0], messages[1]]),
            lambda: consumer.consumer.acknowledge_cumulative(messages[0]),
            lambda: consumer.consumer.negative_acknowledge(messages[0]),
        ):
            with pytest.raises(InvalidValue, match=MIXED):
                action()

    def test_a_message_of_a_different_store_is_refused(self, ours: Side, theirs: Side) -> None:
        """However the messages are given; nothing is acknowledged, nor given back."""
        before = ours.commits
        self.acknowledge_each_way(ours, theirs)
        assert ours.commits == before
        ours.consumer.acknowledge(ours.received)

    def test_a_message_of_a_different_topic_is_refused(self, ours: Side) -> None:
        """Though this topic has a message of the same id."""
        ours.store.create_producer("u").send(b"u")
        other = ours.store.subscribe("u", "s", initial_position=EARLIEST)
        message = other.receive(0)
        for action in (
            ours.consumer.acknowledge,
            ours.consumer.acknowledge_cumulative,
            ours.consumer.negative_acknowledge,
        ):
            with pytest.raises(InvalidValue, match="belongs to topic u, not to topic t"):
                action(message)
        other.acknowledge(message)

    def test_a_message_of_a_deleted_topic_is_refused(self, store: Store) -> None:
        """A topic created again under the name is a new topic. A bare id means the new one."""
        store.create_producer("t").send(b"1")
        with store.subscribe("t", "s", initial_position=EARLIEST) as consumer:
            message = consumer.receive(0)
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        with pytest.raises(InvalidValue, match="a deleted topic"):
            consumer.acknowledge(message)
        with pytest.raises(MessageNotFound):
            consumer.acknowledge(message.message_id)

    def test_a_message_may_come_from_a_reader_a_report_or_a_former_handle(
        self, ours: Side, path: str, clock: ManualClock
    ) -> None:
        """A message is of its topic, whichever way, and through whichever handle, the message was read."""
        (peeked,) = ours.store.reports.peek_messages("t", "s", 1)
        read = list(ours.store.reader("t"))
        with Store.open(path, clock=clock) as second:
            also_read = list(second.reader("t"))
        ours.consumer.acknowledge(peeked)
        ours.consumer.acknowledge([read[1], also_read[2]])
        assert row_json(ours.store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0


READS: dict[str, Callable[[Side], object]] = {
    "topics": lambda side: side.store.topics(),
    "has_topic": lambda side: side.store.has_topic("t"),
    "tables": lambda side: side.store.tables(),
    "reader": lambda side: side.store.reader("t"),
    "table": lambda side: side.store.table("rows"),
    "get": lambda side: side.table.get(b"k"),
    "get nothing": lambda side: side.table.get(b"none"),
    "scan": lambda side: list(side.table.scan()),
    "versions": lambda side: side.table.versions(b"k"),
    "receive": lambda side: side.consumer.receive_batch(1, 0),
    "read the same page": lambda side: side.reader.read_next(0),
    "entries": lambda side: list(side.reader.entries()),
    "is available": lambda side: side.reader.has_message_available(),
    "peek": lambda side: side.store.reports.peek_messages("t", "s"),
    "blocked_by": lambda side: side.consumer.blocked_by(),
    "stats": lambda side: side.store.reports.topic_stats("t"),
    "info": lambda side: side.store.reports.store_info(),
    "locks": lambda side: side.store.reports.list_locks(),
    "verify": lambda side: side.store.maintenance.verify_store(),
    "begin": lambda side: side.store.transaction(),
    "begin read-committed": lambda side: side.store.transaction(isolation="read-committed"),
    "state": lambda side: side.txn.state,
    "commit": lambda side: side.txn.commit(),
}


class TestClosedHandles:
    """A closed handle reads and writes nothing, though another handle keeps the store open in this process."""

    @pytest.mark.parametrize("read", READS.values(), ids=READS)
    def test_a_closed_handle_serves_nothing(
        self, ours: Side, path: str, clock: ManualClock, read: Callable[[Side], object]
    ) -> None:
        """Neither through the store nor through an object made from the store."""
        ours.table.put(b"k", b"v")
        ours.producer.send(b"next")
        with Store.open(path, clock=clock) as second:
            assert ours.consumer.receive(0).value == b"next"
            ours.store.close()
            with pytest.raises(StoreClosed, match="is closed"):
                read(ours)
            assert second.topics() == ["t", "u"]

    def test_a_transaction_of_a_closed_handle_is_closed(
        self, ours: Side, path: str, clock: ManualClock
    ) -> None:
        """With or without a record, to write, to read, and to commit; so is one used through another handle."""
        ours.table.put(b"k", b"v")
        empty = ours.store.transaction()
        reader = ours.store.transaction(isolation="read-committed")
        with Store.open(path, clock=clock) as second:
            table = second.table("rows")
            ours.store.close()
            for txn in (empty, reader):
                for each in (ours.table, table):
                    with pytest.raises(StoreClosed):
                        each.get(b"k", txn=txn)
                    with pytest.raises(StoreClosed):
                        list(each.scan(txn=txn))
            with pytest.raises(StoreClosed):
                empty.commit()
            with pytest.raises(StoreClosed):
                second.create_producer("t").send(b"x", txn=empty)


class TestEndedTransactions:
    """An ended transaction reads nothing more."""

    @pytest.mark.parametrize("isolation", ["serializable", "read-committed"])
    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_a_scan_that_was_begun_before_ends_with_its_transaction(
        self, ours: Side, isolation: str, end: str
    ) -> None:
        """Pages behind the end of the transaction are not read."""
        ours.table.put(b"k", b"v")
        txn = ours.store.transaction(isolation=isolation)
        rows = ours.table.scan(txn=txn)
        getattr(txn, end)()
        with pytest.raises(TransactionNotOpen):
            next(rows)
