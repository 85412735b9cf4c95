"""Attached transactions keep their messages in the process: what that costs, what shows when, and that nobody is fooled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from storage import (
    DUPLICATE,
    EARLIEST,
    LATEST,
    IsolationLevel,
    LateMessageId,
    MessageId,
    Producer,
    Store,
    SubscriptionType,
    Table,
    Transaction,
    TransactionState,
    faults,
)
from storage.errors import (
    NotDeliverable,
    ProducerFenced,
    RequestTooOld,
    SequenceConflict,
    StoreClosed,
    TopicNotFound,
    TransactionNotOpen,
    TransactionTimedOut,
    WriterBusy,
    WriteTooOld,
)
from storage.limits import ENTRY_MESSAGES_MAX, MESSAGE_BYTES_MAX
from storage.process.clock import ManualClock
from storage.process.lock_file import LockFile
from tests.row_json import row_json
from tests.storage.busy import busy

DIRTY = IsolationLevel.READ_UNCOMMITTED
KEPT_S = 1.0
"""No message stays in the process for longer."""


def commits(store: Store) -> int:
    """Durable store transactions so far."""
    return int(row_json(store.reports.store_info())["commits"])


@pytest.fixture
def producer(store: Store) -> Producer:
    """Connected to `t`."""
    return store.create_producer("t", producer_name="p")


@pytest.fixture
def table(store: Store) -> Table:
    """`accounts`, with two balances, in a process that has begun a transaction before."""
    store.create_table("accounts")
    table = store.table("accounts")
    with store.transaction() as txn:
        table.put(b"a", b"100", txn=txn)
        table.put(b"b", b"100", txn=txn)
    return table


@pytest.fixture
def disarmed() -> Iterator[None]:
    """No fault point is armed after the test."""
    yield
    faults.disarm()


def interrupt() -> None:
    """Ctrl-C at a point that was armed."""
    faults.disarm()
    raise KeyboardInterrupt


def values(
    store: Store, level: IsolationLevel = IsolationLevel.READ_COMMITTED, topic: str = "t"
) -> list[Any]:
    """All messages of a topic."""
    return [message.value for message in store.reader(topic, isolation_level=level)]


class TestCost:
    """Durable store transactions, counted."""

    def test_sends_and_their_commit_are_one(self, store: Store, producer: Producer) -> None:
        """Begin, three sends, commit: one fsync in all, and the record tells of them."""
        before = commits(store)
        with store.transaction() as txn:
            for number in range(3):
                producer.send(b"%d" % number, txn=txn)
        assert commits(store) - before == 1
        assert values(store) == [b"0", b"1", b"2"]
        assert row_json(store.reports.show_transaction(txn))["messages"] == 3

    def test_several_producers_and_a_table_are_one(
        self, store: Store, producer: Producer, table: Table
    ) -> None:
        """A transfer over two keys that tells two topics of it."""
        store.create_topic("u")
        other = store.create_producer("u")
        before = commits(store)
        with store.transaction() as txn:
            a, b = (int(table.get(key, txn=txn) or 0) for key in (b"a", b"b"))
            table.put(b"a", b"%d" % (a - 1), txn=txn)
            producer.send(b"-1", txn=txn)
            table.put(b"b", b"%d" % (b + 1), txn=txn)
            other.send(b"+1", txn=txn)
        assert commits(store) - before == 1
        assert (values(store), values(store, topic="u")) == ([b"-1"], [b"+1"])
        assert [row.value for row in table.scan()] == [b"99", b"101"]

    def test_a_transfer_is_one(self, store: Store, table: Table) -> None:
        """Two reads, two puts, the commit."""
        before = commits(store)
        with store.transaction() as txn:
            for key in (b"a", b"b"):
                table.put(key, b"%d" % (int(table.get(key, txn=txn) or 0) + 1), txn=txn)
        assert commits(store) - before == 1

    @pytest.mark.parametrize(
        "order", ["acknowledge get put send", "get put send acknowledge", "send acknowledge get put"]
    )
    def test_an_acknowledgement_is_one_more(
        self, store: Store, producer: Producer, table: Table, order: str
    ) -> None:
        """It gives the transaction its record and says that it uses tables; all else is one with the commit."""
        producer.send(b"request")
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        message = consumer.receive(timeout=0)
        before = commits(store)
        with store.transaction() as txn:
            steps: dict[str, Callable[[], object]] = {
                "acknowledge": lambda: consumer.acknowledge(message, txn=txn),
                "get": lambda: table.get(b"a", txn=txn),
                "put": lambda: table.put(b"a", b"0", txn=txn),
                "send": lambda: producer.send(b"done", txn=txn),
            }
            for step in order.split():
                steps[step]()
        assert commits(store) - before == 2
        assert (values(store), table.get(b"a")) == ([b"request", b"done"], b"0")
        assert row_json(store.reports.subscription_stats("t", "s"))["pending"] == 0

    def test_an_abort_that_nobody_saw_is_none(self, store: Store, producer: Producer, table: Table) -> None:
        """Nothing is left of it, not even a number."""
        before, count = commits(store), row_json(store.reports.store_info())["transactions"]
        txn = store.transaction()
        kept = producer.send(b"never", txn=txn)
        table.put(b"a", b"never", txn=txn)
        txn.abort()
        assert (commits(store), row_json(store.reports.store_info())["transactions"]) == (before, count)
        assert txn.state is TransactionState.ABORTED
        with pytest.raises(TransactionNotOpen):
            str(kept)
        assert values(store, DIRTY) == []

    def test_in_a_store_without_tables_one_that_does_nothing_is_none(self, store: Store) -> None:
        """Begin and commit."""
        before = commits(store)
        with store.transaction() as txn:
            assert txn.state is TransactionState.OPEN
        assert (txn.state, commits(store)) == (TransactionState.COMMITTED, before)

    def test_what_does_not_fit_a_store_transaction_is_written_on_the_way(
        self, store: Store, producer: Producer
    ) -> None:
        """Three times 3 MiB: the third is too much, so the first two are written, and it comes with the commit."""
        large = b"x" * (3 << 20)
        before = commits(store)
        with store.transaction() as txn:
            for _ in range(3):
                producer.send(large, txn=txn)
            assert commits(store) - before == 1
            assert len(values(store, DIRTY)) == 2
        assert commits(store) - before == 2
        assert values(store) == [large] * 3

    def test_a_batch_that_is_larger_is_stored_at_once(self, store: Store, producer: Producer) -> None:
        """After what was kept before it, in order."""
        large = b"x" * MESSAGE_BYTES_MAX
        with store.transaction() as txn:
            producer.send(b"first", txn=txn)
            receipt = producer.send_batch([large] * 3, txn=txn)
            assert not receipt.is_buffered
            producer.send(b"last", txn=txn)
        assert values(store) == [b"first", large, large, large, b"last"]


class TestReceipts:
    """Where a kept message went, for who wants to know."""

    def test_consecutive_sends_are_one_entry(self, store: Store, producer: Producer) -> None:
        """Each knows its place in it, with all that it was sent with."""
        with store.transaction() as txn:
            first = producer.send(b"0", txn=txn)
            batch = producer.send_batch([b"1", None], keys=["k", None], txn=txn)
            last = producer.send(b"3", properties={"a": "b"}, event_time=7, txn=txn)
        assert [str(first), *map(str, batch), str(last)] == ["1:0:0", "1:0:1", "1:0:2", "1:0:3"]
        assert batch.entries == [(first.position, 2)]
        assert (batch.count, len(batch), batch.duplicates) == (2, 2, 0)
        assert (batch.last_sequence_id, producer.last_sequence_id) == (2, 3)
        found = list(store.reader("t"))
        assert [message.message_id for message in found] == [first, *batch, last]
        assert [(m.value, m.key, m.properties, m.event_time, m.sequence_id) for m in found] == [
            (b"0", None, {}, None, 0),
            (b"1", b"k", {}, None, 1),
            (None, None, {}, None, 2),
            (b"3", None, {"a": "b"}, 7, 3),
        ]

    def test_an_entry_has_no_more_than_its_bounds_allow(self, store: Store, producer: Producer) -> None:
        """Many small sends become several entries, and every message is found where its receipt says."""
        count = ENTRY_MESSAGES_MAX // 2
        with store.transaction() as txn:
            receipts = [producer.send_batch([b"%d" % part] * count, txn=txn) for part in range(3)]
            wide = producer.send_batch([b"w" * 200_000] * 3, txn=txn)
        assert [len({each.position for each in receipt}) for receipt in (*receipts, wide)] == [1, 1, 1, 3]
        found = [message.message_id for message in store.reader("t")]
        assert found == [each for receipt in (*receipts, wide) for each in receipt]

    def test_looking_writes_what_is_kept(self, store: Store, producer: Producer) -> None:
        """One store transaction for all that was sent before; the transaction goes on."""
        with store.transaction() as txn:
            before = commits(store)
            kept, more = producer.send(b"0", txn=txn), producer.send(b"1", txn=txn)
            assert isinstance(kept, LateMessageId)
            assert (commits(store), values(store, DIRTY)) == (before, [])
            assert (kept.ledger_id, kept.entry_id, kept.batch_index) == (1, 0, 0)
            assert (str(more), hash(more)) == ("1:0:1", hash(MessageId(1, 0, 1)))
            assert (commits(store), values(store, DIRTY)) == (before + 1, [b"0", b"1"])
            later = producer.send(b"2", txn=txn)
        assert (str(later), later.message_id) == ("1:1", MessageId(1, 1))
        assert kept != more
        assert kept == MessageId(1, 0, 0)
        assert MessageId(1, 0, 0) == kept

    def test_such_an_id_is_taken_wherever_ids_are(self, store: Store, producer: Producer) -> None:
        """As a start, and to acknowledge."""
        with store.transaction() as txn:
            producer.send(b"0", txn=txn)
            kept = producer.send(b"1", txn=txn)
        assert [message.value for message in store.reader("t", start=kept)] == [b"1"]
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        consumer.acknowledge([kept])
        assert consumer.receive(timeout=0).value == b"0"
        consumer.acknowledge_cumulative(kept)
        assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0

    def test_duplicates_say_so(self, store: Store, producer: Producer) -> None:
        """Ids that are stored by then, and ids that were sent before in the same transaction."""
        producer.send(b"plain", sequence_id=5)
        with store.transaction() as txn:
            again = producer.send(b"again", sequence_id=5, txn=txn)
            batch = producer.send_batch([b"6", b"5", b"7"], sequence_ids=[6, 5, 7], txn=txn)
            twice = producer.send(b"twice", sequence_id=6, txn=txn)
            fresh = producer.send(b"8", sequence_id=8, txn=txn)
        assert again == twice == DUPLICATE
        assert (batch.count, batch.duplicates, batch.last_sequence_id) == (2, 1, 7)
        assert values(store) == [b"plain", b"6", b"7", b"8"]
        assert [str(each) for each in batch] == ["1:1:0", "1:1:1"]
        assert str(fresh) == "1:1:2"

    def test_given_and_assigned_sequence_ids_may_follow_each_other(
        self, store: Store, producer: Producer
    ) -> None:
        """In order, as if each had been stored at once."""
        with store.transaction() as txn:
            for given in (None, 7, None, 3):
                producer.send(b"x", sequence_id=given, txn=txn)
        assert [message.sequence_id for message in store.reader("t")] == [0, 7, 8, 3]


class TestOrder:
    """A producer's messages stand in its topic as it sent them; what a transaction reads back includes its own."""

    def test_a_plain_send_comes_after_what_is_kept(self, store: Store, producer: Producer) -> None:
        """The transaction's message is written first, and blocks the plain one as ever."""
        with store.transaction() as txn:
            producer.send(b"in", txn=txn)
            assert producer.send(b"plain") == MessageId(1, 1)
            assert (values(store), values(store, DIRTY)) == ([], [b"in", b"plain"])
        assert values(store) == [b"in", b"plain"]

    def test_transactions_take_turns(self, store: Store, producer: Producer) -> None:
        """Of one producer, whichever commits first."""
        one, two = store.transaction(), store.transaction()
        for number, txn in enumerate((one, two, one, two)):
            producer.send(b"%d" % number, txn=txn)
        two.commit()
        one.commit()
        assert values(store) == [b"0", b"1", b"2", b"3"]

    def test_topics_keep_the_order_of_each_producer(self, store: Store, producer: Producer) -> None:
        """Sends that alternate between topics are entries of their own."""
        store.create_topic("u")
        other = store.create_producer("u")
        with store.transaction() as txn:
            for number in range(4):
                (producer, other)[number % 2].send(b"%d" % number, txn=txn)
        assert (values(store), values(store, topic="u")) == ([b"0", b"2"], [b"1", b"3"])
        assert [row["messages"] for row in row_json(store.reports.topic_log("t"))] == [1, 1, 0]

    def test_who_receives_for_it_uncommitted_is_handed_its_own(
        self, store: Store, producer: Producer
    ) -> None:
        """What it keeps is written before."""
        consumer = store.subscribe(
            "t", "s", initial_position=EARLIEST, subscription_isolation_level="READ_UNCOMMITTED"
        )
        with store.transaction() as txn:
            producer.send(b"own", txn=txn)
            assert consumer.receive(timeout=0, txn=txn).value == b"own"

    @pytest.mark.parametrize("call", ["id", "number", "flush", "producer.flush", "producer.close", "show"])
    def test_who_asks_is_shown(self, store: Store, producer: Producer, call: str) -> None:
        """Each of these writes what is kept."""
        txn = store.transaction()
        producer.send(b"x", txn=txn)
        calls: dict[str, Callable[[], object]] = {
            "id": lambda: txn.id,
            "number": lambda: txn.number,
            "flush": txn.flush,
            "producer.flush": producer.flush,
            "producer.close": producer.close,
            "show": lambda: row_json(store.reports.show_transaction(txn)),
        }
        calls[call]()
        assert values(store, DIRTY) == [b"x"]
        txn.commit()
        assert values(store) == [b"x"]

    def test_after_its_number_is_known_nothing_is_kept(self, store: Store, producer: Producer) -> None:
        """Others may use it, and see what it did."""
        txn = store.transaction()
        assert row_json(store.reports.show_transaction(txn.id))["state"] == "OPEN"
        assert producer.send(b"x", txn=txn) == MessageId(1, 0)
        assert values(store, DIRTY) == [b"x"]
        txn.commit()

    def test_a_take_over_that_spares_it_goes_on_after_what_it_kept(self, store: Store) -> None:
        """It names the transaction: what was sent by the former owner is accepted under the new epoch."""
        former = store.create_producer("t", access_mode="Exclusive")
        txn = store.transaction()
        former.send(b"former", txn=txn)
        owner = store.create_producer("t", access_mode="ExclusiveWithFencing", txn=txn)
        owner.send(b"new", txn=txn)
        txn.commit()
        assert [(m.value, m.epoch) for m in store.reader("t")] == [(b"former", 0), (b"new", 1)]


class TestRefusals:
    """What is known is said at once; what depends on the store shows when it is written."""

    def test_a_transaction_that_is_over_takes_nothing(
        self, store: Store, producer: Producer, clock: ManualClock
    ) -> None:
        """Committed, aborted, or late."""
        done, dropped = store.transaction(), store.transaction()
        done.commit()
        dropped.abort()
        for txn in (done, dropped):
            with pytest.raises(TransactionNotOpen):
                producer.send(b"never", txn=txn)
        late = store.transaction(timeout=5)
        clock.advance(6)
        with pytest.raises(TransactionTimedOut):
            producer.send(b"never", txn=late)
        assert values(store, DIRTY) == []

    def test_a_conflict_refuses_the_commit_and_keeps_everything(
        self, store: Store, producer: Producer, table: Table
    ) -> None:
        """Nothing was written; when the other one is out of the way the commit can be repeated."""
        other = store.begin_transaction()
        producer.send(b"theirs", sequence_id=1, txn=other)
        txn = store.transaction()
        producer.send(b"0", sequence_id=0, txn=txn)
        producer.send(b"ours", sequence_id=1, txn=txn)
        table.put(b"a", b"1", txn=txn)
        with pytest.raises(SequenceConflict):
            txn.commit()
        assert txn.state is TransactionState.OPEN
        assert (values(store, DIRTY), table.get(b"a")) == ([b"theirs"], b"100")
        store.admin.transactions.abort_transaction(other)
        txn.commit()
        assert (values(store), table.get(b"a")) == ([b"0", b"ours"], b"1")

    def test_a_topic_that_is_gone_refuses_the_commit(self, store: Store, producer: Producer) -> None:
        """It does not doom: what is kept for others may still be dropped by an abort."""
        txn = store.transaction()
        producer.send(b"x", txn=txn)
        store.admin.topics.delete_topic("t", force=True)
        with pytest.raises(TopicNotFound):
            txn.commit()
        txn.abort()
        assert txn.state is TransactionState.ABORTED

    def test_a_refused_abort_drops_nothing(self, path: str, store: Store, clock: ManualClock) -> None:
        """The store was too busy: what is committed later all the same is whole, and what was sent is found."""
        with Store.open(path, clock=clock, lock_timeout=0.05) as impatient:
            producer, txn = impatient.create_producer("t"), impatient.transaction()
            producer.send(b"flushed", txn=txn)
            txn.flush()
            kept = producer.send(b"kept", txn=txn)
            with busy(store), pytest.raises(WriterBusy):
                txn.abort()
            assert txn.state is TransactionState.OPEN
            txn.commit()
            assert str(kept) == "1:1"
        assert values(store) == [b"flushed", b"kept"]

    def test_an_abort_that_was_refused_can_be_repeated(
        self, path: str, store: Store, clock: ManualClock
    ) -> None:
        """Then nothing is left of it, and nothing of it is written any more."""
        with Store.open(path, clock=clock, lock_timeout=0.05) as impatient:
            producer, txn = impatient.create_producer("t"), impatient.transaction()
            producer.send(b"flushed", txn=txn)
            txn.flush()
            producer.send(b"never", txn=txn)
            with busy(store), pytest.raises(WriterBusy):
                txn.abort()
            txn.abort()
            clock.advance(KEPT_S)
            assert txn.state is TransactionState.ABORTED
        assert values(store, DIRTY) == [b"flushed"]

    def test_a_refused_put_leaves_no_message(self, store: Store, producer: Producer, table: Table) -> None:
        """All keys are judged before anything is appended: the doom is all that is left."""
        txn = store.transaction()
        producer.send(b"never", txn=txn)
        table.put(b"a", b"1", txn=txn)
        table.put(b"a", b"later")
        with pytest.raises(WriteTooOld):
            txn.commit()
        assert list(row_json(store.reports.topic_log("t"))) == []
        assert row_json(store.reports.show_transaction(txn))["reason"] == "refused-write"

    def test_who_is_fenced_dooms_before_anybody_is_pushed(
        self, store: Store, producer: Producer, table: Table
    ) -> None:
        """Its puts would have won against an open transaction, which goes on."""
        holder = store.begin_transaction(priority="low")
        table.put(b"a", b"1", txn=holder)
        txn = store.transaction()
        table.put(b"a", b"2", txn=txn)
        producer.send(b"never", txn=txn)
        store.create_producer("t", access_mode="ExclusiveWithFencing")
        with pytest.raises(ProducerFenced):
            txn.commit()
        assert row_json(store.reports.show_transaction(txn))["reason"] == "fenced"
        assert store.commit_transaction(holder)
        assert table.get(b"a") == b"1"

    def test_a_message_that_is_newer_than_its_tables_is_refused(
        self, store: Store, producer: Producer, table: Table
    ) -> None:
        """The order rule holds, although the use of a table is marked by the acknowledgement itself."""
        consumer = store.subscribe("t", "s", initial_position=EARLIEST)
        reader = store.transaction()
        assert table.get(b"a", txn=reader) == b"100"
        producer.send(b"newer")
        message = consumer.receive(timeout=0)
        with pytest.raises(NotDeliverable):
            consumer.acknowledge(message, txn=reader)
        late = store.transaction()
        producer.send(b"newer still")
        newest = consumer.receive(timeout=0)
        consumer.acknowledge(newest, txn=late)
        with pytest.raises(RequestTooOld):
            table.put(b"a", b"0", txn=late)
        assert late.state is TransactionState.ABORTED

    def test_others_see_that_it_uses_tables_once_they_may_use_it(
        self, store: Store, producer: Producer, table: Table
    ) -> None:
        """Its number is asked for after an acknowledgement and a read: its bound is in the store then."""
        producer.send(b"older")
        consumer = store.subscribe(
            "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        message = consumer.receive(timeout=0)
        txn = store.transaction()
        consumer.acknowledge(message, txn=txn)
        assert table.get(b"a", txn=txn) == b"100"
        producer.send(b"newer")
        assert list(consumer.receive_batch(1, timeout=0, txn=txn.id)) == []
        assert txn.message_bound == txn.timestamp
        txn.commit()

    def test_a_table_made_meanwhile_can_be_used(self, store: Store, producer: Producer) -> None:
        """The transaction began in a store without tables, and is given its timestamp when it needs one."""
        txn = store.transaction()
        producer.send(b"x", txn=txn)
        store.create_table("new")
        new = store.table("new")
        new.put(b"k", b"v")
        assert new.get(b"k", txn=txn) == b"v"
        version = new.put(b"k", b"w", txn=txn)
        assert version == txn.timestamp > 0
        txn.commit()
        assert (new.get(b"k"), values(store)) == (b"w", [b"x"])

    def test_a_closed_handle_keeps_nothing(self, path: str, store: Store) -> None:
        """Neither of the producer nor of the store; and what was kept is dropped, as if the process had died."""
        other = Store.open(path, clock=store.connection.clock)
        producer, txn = other.create_producer("t"), other.transaction()
        producer.send(b"never", txn=txn)
        other.close()
        for call in (txn.flush, txn.commit, lambda: producer.send(b"never", txn=txn)):
            with pytest.raises(StoreClosed):
                call()
        assert values(store, DIRTY) == []


class TestWatch:
    """What is kept is written within a second, whatever its process does."""

    def test_an_idle_transaction_is_seen(
        self, store: Store, producer: Producer, clock: ManualClock, table: Table
    ) -> None:
        """Its messages alone: puts wait for the commit."""
        txn = store.transaction()
        producer.send(b"x", txn=txn)
        table.put(b"a", b"0", txn=txn)
        assert values(store, DIRTY) == []
        clock.advance(KEPT_S)
        assert values(store, DIRTY) == [b"x"]
        assert (txn.state, row_json(store.reports.list_intents())) == (TransactionState.OPEN, [])
        assert row_json(store.reports.topic_stats("t"))["ongoingTxnCount"] == 1
        txn.commit()
        assert (values(store), table.get(b"a")) == ([b"x"], b"0")

    def test_it_goes_on_after_each(self, store: Store, producer: Producer, clock: ManualClock) -> None:
        """Second for second, and again after a long time in which nothing was kept."""
        txn = store.transaction(timeout=3600)
        for number in range(3):
            producer.send(b"%d" % number, txn=txn)
            clock.advance(KEPT_S)
            assert len(values(store, DIRTY)) == number + 1
            clock.advance(60 * number)
        txn.commit()
        assert len(values(store)) == 3

    def test_nothing_is_written_for_one_that_has_ended(
        self, store: Store, producer: Producer, clock: ManualClock
    ) -> None:
        """Committed or aborted before it was due."""
        with store.transaction() as txn:
            producer.send(b"x", txn=txn)
        dropped = store.transaction()
        producer.send(b"never", txn=dropped)
        dropped.abort()
        before = commits(store)
        clock.advance(10)
        assert commits(store) == before

    def test_a_failure_is_raised_by_the_next_operation(
        self, store: Store, producer: Producer, clock: ManualClock, table: Table
    ) -> None:
        """The transaction was aborted meanwhile, durably; whoever goes on is told why, once."""
        txn = store.transaction()
        producer.send(b"never", txn=txn)
        store.create_producer("t", access_mode="ExclusiveWithFencing")
        clock.advance(KEPT_S)
        assert txn.state is TransactionState.ABORTED
        with pytest.raises(ProducerFenced):
            table.get(b"a", txn=txn)
        with pytest.raises(TransactionNotOpen):
            txn.commit()
        assert list(row_json(store.reports.topic_log("t"))) == []

    def test_who_waits_for_the_writer_gate_is_named(
        self, path: str, store: Store, clock: ManualClock
    ) -> None:
        """Once a wait, after a second; nothing fails, and when the gate is free what is kept is written."""
        told: list[tuple[str, float]] = []
        with Store.open(path, clock=clock, on_wait=lambda *who: told.append(who)) as other:
            gate, txn = store.connection.environment.locks.gate, other.transaction()
            other.create_producer("t").send(b"x", txn=txn)
            holder = LockFile(f"{path}/store.lock", clock, writable=True)
            holder.gate.enter(0, None)
            clock.advance(0.8)
            assert told == []
            clock.advance(5)
            ((who, waited_s),) = told
            assert (who, waited_s) == (gate.holder(), pytest.approx(1.5, abs=0.6))
            holder.gate.leave()
            holder.close()
            clock.advance(KEPT_S)
            assert values(store, DIRTY) == [b"x"]
            txn.commit()

    def test_a_conflict_found_by_the_watch_does_not_doom(
        self, store: Store, producer: Producer, clock: ManualClock
    ) -> None:
        """It is told, and what is kept stays kept until it is out of the way."""
        other = store.begin_transaction()
        producer.send(b"theirs", sequence_id=1, txn=other)
        txn = store.transaction()
        producer.send(b"ours", sequence_id=1, txn=txn)
        clock.advance(KEPT_S)
        with pytest.raises(SequenceConflict):
            txn.flush()
        store.admin.transactions.abort_transaction(other)
        txn.commit()
        assert values(store) == [b"ours"]

    def test_a_producer_that_leaves_does_not_fail_for_its_transaction(
        self, store: Store, producer: Producer, clock: ManualClock
    ) -> None:
        """It can leave, and the transaction is told later."""
        txn = store.transaction()
        producer.send(b"never", txn=txn)
        store.create_producer("t", access_mode="ExclusiveWithFencing")
        producer.close()
        with pytest.raises(ProducerFenced):
            txn.commit()


@pytest.mark.usefixtures("disarmed")
class TestInterrupts:
    """Ctrl-C around a store transaction: what was stored is not stored again, what was not is not lost."""

    @pytest.mark.parametrize(
        "point", ["environment.before_change", "environment.before_commit", "environment.after_commit"]
    )
    @pytest.mark.parametrize("call", ["flush", "commit"])
    def test_each_message_is_stored_once(
        self, store: Store, producer: Producer, point: str, call: str
    ) -> None:
        """Whether the interrupted call was committed or not, the transaction goes on to be committed."""

        txn = store.transaction()
        ids = [producer.send(b"%d" % number, txn=txn) for number in range(2)]
        faults.arm(point, interrupt)
        with pytest.raises(KeyboardInterrupt):
            getattr(txn, call)()
        txn.commit()
        assert txn.state is TransactionState.COMMITTED
        found = [(message.value, message.message_id) for message in store.reader("t")]
        assert found == [(b"0", ids[0]), (b"1", ids[1])]
        assert row_json(store.reports.store_info())["transactions"] == 1

    def test_a_block_interrupted_after_its_commit_is_committed(
        self, store: Store, producer: Producer
    ) -> None:
        """It is the interrupt that is raised, and nothing is undone."""

        def run(txn: Transaction) -> None:
            with txn:
                producer.send(b"x", txn=txn)
                faults.arm("environment.after_commit", interrupt)

        txn = store.transaction()
        with pytest.raises(KeyboardInterrupt):
            run(txn)
        assert txn.state is TransactionState.COMMITTED
        assert values(store) == [b"x"]

    def test_a_block_interrupted_in_its_commit_leaves_nothing_open(
        self, store: Store, producer: Producer
    ) -> None:
        """It was not committed, so it is aborted; nobody behind it is blocked."""

        def run(txn: Transaction) -> None:
            with txn:
                producer.send(b"never", txn=txn)
                txn.flush()
                faults.arm("environment.before_commit", interrupt)

        txn = store.transaction()
        with pytest.raises(KeyboardInterrupt):
            run(txn)
        assert txn.state is TransactionState.ABORTED
        assert store.reader("t", start=LATEST).has_message_available() is False
        producer.send(b"next")
        assert values(store) == [b"next"]
