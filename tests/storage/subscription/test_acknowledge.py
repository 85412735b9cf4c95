"""Acknowledging: one by one and cumulatively, plainly and in transactions; what is refused (semantics section 5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, Message, MessageId, Store, SubscriptionType, TxnID
from storage.errors import (
    BadInput,
    InvalidPosition,
    InvalidValue,
    MessageNotFound,
    NotDeliverable,
    StoreClosed,
    TransactionConflict,
)
from storage.subscription.span import SPAN_MESSAGES_MAX
from tests.row_json import row_json
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages

RC, RU = IsolationLevel
EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType
ORDERED, UNORDERED = [EXCLUSIVE, FAILOVER], [SHARED, KEY_SHARED]
Subscribe = Callable[..., Consumer]
LARGE = SPAN_MESSAGES_MAX + 1
"""Messages of an entry that has a record of its own."""


@pytest.fixture
def subscribe(store: Store) -> Subscribe:
    """Attaches to subscription `a` of topic `t`, from the beginning."""

    def attach(type_: SubscriptionType = EXCLUSIVE, level: IsolationLevel = RC, **more: object) -> Consumer:
        return store.subscribe(
            "t",
            "a",
            subscription_type=type_,
            subscription_isolation_level=level,
            initial_position=EARLIEST,
            **more,  # type: ignore[arg-type]
        )

    return attach


def send(store: Store, count: int, txn: TxnID | None = None) -> None:
    """Send so many messages, an entry each."""
    producer = store.create_producer("t")
    for number in range(count):
        producer.send(b"%d" % number, txn=txn)


def send_batch(store: Store, count: int) -> None:
    """Send so many messages in one entry."""
    store.create_producer("t").send_batch([b"%d" % number for number in range(count)])


def receive(consumer: Consumer) -> list[Message]:
    return list(consumer.receive_batch(99, timeout=0))


def ids(messages: list[Message]) -> list[str]:
    return [str(message.message_id) for message in messages]


def mark_delete(store: Store) -> str:
    found: str = row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"]
    return found


class TestIndividual:
    """One by one."""

    @pytest.mark.parametrize("type_", list(SubscriptionType))
    def test_an_acknowledged_message_is_never_handed_out_again(
        self, store: Store, subscribe: Subscribe, type_: SubscriptionType
    ) -> None:
        """A new consumer is handed what was not acknowledged, and no more (invariant 7)."""
        send(store, 4)
        with subscribe(type_) as consumer:
            messages = receive(consumer)
            consumer.acknowledge([messages[1], messages[3]])
        assert ids(receive(subscribe(type_))) == ["1:0", "1:2"]

    def test_mark_delete_follows_without_a_gap(self, store: Store, subscribe: Subscribe) -> None:
        """What is acknowledged ahead waits for what lies before it."""
        send(store, 4)
        consumer = subscribe()
        messages = receive(consumer)
        marks = []
        for index in (2, 1, 0, 3):
            consumer.acknowledge(messages[index])
            marks.append(mark_delete(store))
        assert marks == ["1:-1", "1:-1", "1:2", "1:3"]

    def test_repeating_a_plain_acknowledgement_changes_nothing(
        self, store: Store, subscribe: Subscribe
    ) -> None:
        """Before and after markDeletePosition has passed it, whole or part of a batch."""
        send_batch(store, 3)
        send(store, 2)
        consumer = subscribe()
        messages = receive(consumer)
        for index in (1, 4, 3, 0):
            for _ in range(2):
                consumer.acknowledge(messages[index])
        assert mark_delete(store) == "1:-1"
        consumer.acknowledge(messages[2])
        consumer.acknowledge(messages)
        assert mark_delete(store) == "1:2"

    def test_messages_of_a_batch_are_acknowledged_apart(self, store: Store, subscribe: Subscribe) -> None:
        """The cursor keeps batch indexes; the entry is acknowledged when all of it is."""
        send_batch(store, 3)
        with subscribe() as consumer:
            consumer.acknowledge(MessageId(1, 0, 1))
        with subscribe() as consumer:
            assert ids(receive(consumer)) == ["1:0:0", "1:0:2"]
            consumer.acknowledge([MessageId(1, 0, 0), MessageId(1, 0, 2)])
        assert mark_delete(store) == "1:0"

    def test_an_id_without_a_batch_index_means_the_whole_entry(
        self, store: Store, subscribe: Subscribe
    ) -> None:
        """`1:0` of a batch is all of its messages."""
        send_batch(store, 3)
        consumer = subscribe()
        consumer.acknowledge(MessageId(1, 0))
        assert mark_delete(store) == "1:0"
        assert receive(consumer) == []

    def test_many_are_one_change(self, store: Store, subscribe: Subscribe) -> None:
        """A thousand acknowledgements are one durable commit."""
        send_batch(store, 1000)
        consumer = subscribe()
        messages = receive(consumer) + receive(consumer)
        before = row_json(store.reports.store_info())["commits"]
        consumer.acknowledge(messages)
        assert row_json(store.reports.store_info())["commits"] == before + 1

    def test_nothing_is_acknowledged_by_an_empty_list(self, store: Store, subscribe: Subscribe) -> None:
        """No message, no change."""
        send(store, 1)
        consumer = subscribe()
        before = row_json(store.reports.store_info())["commits"]
        consumer.acknowledge([])
        assert row_json(store.reports.store_info())["commits"] == before

    def test_a_closed_consumer_acknowledges_nothing(self, store: Store, subscribe: Subscribe) -> None:
        """It was given up; what it held belongs to others."""
        send(store, 1)
        consumer = subscribe()
        (message,) = receive(consumer)
        consumer.close()
        for call in (consumer.acknowledge, consumer.acknowledge_cumulative, consumer.negative_acknowledge):
            with pytest.raises(StoreClosed):
                call(message)

    def test_what_is_acknowledged_in_the_queue_is_not_given_out(
        self, store: Store, subscribe: Subscribe
    ) -> None:
        """A message handed to a consumer, and acknowledged before its application took it, does not come."""
        send(store, 6)
        consumer = subscribe()
        consumer.receive(timeout=1)
        consumer.acknowledge(MessageId(1, 2))
        store.admin.acknowledgements.acknowledge_messages("t", "a", [MessageId(1, 4)])
        assert ids(receive(consumer)) == ["1:1", "1:3", "1:5"]

    def test_what_others_acknowledge_is_not_given_out(self, store: Store, subscribe: Subscribe) -> None:
        """On Shared too: another consumer's acknowledgement, plain or pending, reaches the queue."""
        send(store, 5)
        consumer = subscribe(SHARED)
        consumer.receive(timeout=1)
        other = subscribe(SHARED)
        other.acknowledge(MessageId(1, 1))
        other.acknowledge(MessageId(1, 3), txn=store.begin_transaction())
        assert ids(receive(consumer)) == ["1:2", "1:4"]


class TestCumulative:
    """Everything up to a message."""

    @pytest.mark.parametrize("type_", UNORDERED)
    @pytest.mark.parametrize("is_transactional", [False, True])
    def test_it_is_refused_on_shared_types(
        self, store: Store, subscribe: Subscribe, type_: SubscriptionType, is_transactional: bool
    ) -> None:
        """Shared and Key_Shared have no order to be cumulative in."""
        send(store, 2)
        consumer = subscribe(type_)
        last = receive(consumer)[-1]
        with pytest.raises(InvalidValue):
            consumer.acknowledge_cumulative(last, txn=store.begin_transaction() if is_transactional else None)
        assert mark_delete(store) == "1:-1"

    def test_it_costs_no_more_with_a_thousand_records_of_messages_in_flight(
        self, store: Store, subscribe: Subscribe
    ) -> None:
        """The records behind the message are not read: none has a message that an abort took back."""
        consumer, costs = subscribe(), []
        producer = store.create_producer("t")
        for _ in range(10):
            producer.send_batch([b"x"] * LARGE)
        for is_long in (False, True):
            if is_long:
                write_messages(store, "t", 1000 * LARGE, size=LARGE)
            first = consumer.receive(timeout=0)
            while consumer.receive_batch(1000, timeout=0):
                pass
            with counted(store) as operations:
                consumer.acknowledge_cumulative(first)
            costs.append(operations.total)
            store.admin.subscriptions.clear_backlog("t", "a")
        assert costs[1] <= costs[0] + 2

    @pytest.mark.parametrize("type_", ORDERED)
    def test_it_covers_everything_before(
        self, store: Store, subscribe: Subscribe, type_: SubscriptionType
    ) -> None:
        """Markers, aborted messages and what was never received included."""
        send(store, 2)
        txn = store.begin_transaction()
        send(store, 1, txn)
        store.admin.transactions.abort_transaction(txn)
        send(store, 2)
        consumer = subscribe(type_)
        consumer.acknowledge_cumulative(MessageId(1, 4))
        assert mark_delete(store) == "1:4"
        assert ids(receive(consumer)) == ["1:5"]

    @pytest.mark.parametrize("limit", [1, 2, 100])
    def test_it_may_end_inside_a_batch(self, store: Store, limit: int) -> None:
        """Also in the first entry of a ledger: the rest of the batch stays."""
        store.create_topic("r", ledger_entries_max=limit)
        producer = store.create_producer("r")
        producer.send(b"x")
        producer.send(b"y")
        producer.send_batch([b"0", b"1", b"2"])
        with store.subscribe("r", "a", initial_position=EARLIEST) as consumer:
            *_, inside, last = receive(consumer)
            consumer.acknowledge_cumulative(inside)
            assert row_json(store.reports.subscription_stats("r", "a"))["msgBacklog"] == 1
        with store.subscribe("r", "a") as consumer:
            assert [message.value for message in receive(consumer)] == [b"2"]
            with store.transaction() as txn:
                consumer.acknowledge_cumulative(last, txn=txn)
        assert row_json(store.reports.subscription_stats("r", "a"))["msgBacklog"] == 0

    def test_one_that_lies_behind_changes_nothing(self, store: Store, subscribe: Subscribe) -> None:
        """markDeletePosition never moves back (invariant 1)."""
        send(store, 3)
        consumer = subscribe()
        messages = receive(consumer)
        consumer.acknowledge_cumulative(messages[2])
        consumer.acknowledge_cumulative(messages[0])
        assert mark_delete(store) == "1:2"


class TestNotDeliverable:
    """What the subscription cannot yet be handed is not acknowledged."""

    @pytest.mark.parametrize("is_transactional", [False, True])
    @pytest.mark.parametrize("is_cumulative", [False, True])
    def test_an_open_message_and_what_it_blocks(
        self, store: Store, subscribe: Subscribe, is_transactional: bool, is_cumulative: bool
    ) -> None:
        """At READ_COMMITTED nothing beyond maxReadPosition can be acknowledged."""
        consumer = subscribe()
        send(store, 1, store.begin_transaction())
        send(store, 1)
        call = consumer.acknowledge_cumulative if is_cumulative else consumer.acknowledge
        for message_id in (MessageId(1, 0), MessageId(1, 1)):
            with pytest.raises(NotDeliverable):
                call(message_id, txn=store.begin_transaction() if is_transactional else None)
        assert mark_delete(store) == "1:-1"

    @pytest.mark.parametrize("is_cumulative", [False, True])
    def test_an_aborted_message(self, store: Store, subscribe: Subscribe, is_cumulative: bool) -> None:
        """At READ_COMMITTED it will never be handed out."""
        txn = store.begin_transaction()
        send(store, 1, txn)
        store.admin.transactions.abort_transaction(txn)
        consumer = subscribe()
        call = consumer.acknowledge_cumulative if is_cumulative else consumer.acknowledge
        with pytest.raises(NotDeliverable):
            call(MessageId(1, 0))

    def test_at_read_uncommitted_both_can_be(self, store: Store, subscribe: Subscribe) -> None:
        """Open and aborted messages are handed out there, and so acknowledged."""
        txn = store.begin_transaction()
        send(store, 1, txn)
        store.admin.transactions.abort_transaction(txn)
        send(store, 1, store.begin_transaction())
        consumer = subscribe(level=RU)
        consumer.acknowledge(receive(consumer))
        assert mark_delete(store) == "1:2"

    def test_what_was_handed_out_before_a_change_of_level(self, store: Store, subscribe: Subscribe) -> None:
        """A message received while uncommitted cannot be acknowledged once the subscription is READ_COMMITTED."""
        send(store, 1, store.begin_transaction())
        with subscribe(level=RU) as consumer:
            (message,) = receive(consumer)
        consumer = subscribe(level=RC)
        with pytest.raises(NotDeliverable):
            consumer.acknowledge(message)


class TestMessageNotFound:
    """There must be such a message."""

    @pytest.mark.parametrize(
        "message_id",
        [MessageId(1, 9), MessageId(2, 0), MessageId(1, 0, 3), MessageId(1, 0, 10**9), MessageId(1, 1, 1),
         MessageId(1, 3), MessageId(10**18, 10**18)],
        ids=str,
    )  # fmt: skip
    def test_of_what_is_not_there(self, store: Store, subscribe: Subscribe, message_id: MessageId) -> None:
        """Beyond the log, beyond the batch, a marker: refused, individually and cumulatively."""
        send_batch(store, 3)
        send(store, 1)
        txn = store.begin_transaction()
        send(store, 1, txn)
        store.commit_transaction(txn)
        consumer = subscribe()
        receive(consumer)
        for call in (consumer.acknowledge, consumer.acknowledge_cumulative):
            with pytest.raises(MessageNotFound):
                call(message_id)
        assert mark_delete(store) == "1:-1"

    @pytest.mark.parametrize(
        "message_id",
        [
            MessageId(-1, -1),
            MessageId(1, -1),
            MessageId(-1, 0),
            MessageId(0, -5),
            MessageId(1, 1 << 70),
            MessageId(1, 0, 1 << 40),
        ],
    )
    def test_of_what_is_no_message_id(
        self, store: Store, subscribe: Subscribe, message_id: MessageId
    ) -> None:
        """Negative and absurd ids are refused, never a traceback."""
        send(store, 1)
        consumer = subscribe()
        for call in (consumer.acknowledge, consumer.acknowledge_cumulative, consumer.negative_acknowledge):
            with pytest.raises((InvalidPosition, MessageNotFound)):
                call(message_id)

    @pytest.mark.parametrize("wrong", ["1:0", None, 7, object(), b"1:0"])
    def test_of_what_is_no_message(self, store: Store, subscribe: Subscribe, wrong: object) -> None:
        """A text, a number, nothing: bad input, said so."""
        send(store, 1)
        consumer = subscribe()
        for call in (consumer.acknowledge, consumer.acknowledge_cumulative, consumer.negative_acknowledge):
            with pytest.raises(BadInput):
                call(wrong)  # type: ignore[arg-type]


class TestPlainOverPending:
    """A plain acknowledgement never overrides a pending one."""

    def test_of_the_message_itself(self, store: Store, subscribe: Subscribe) -> None:
        """Refused, naming the transaction; the other messages of the call are not acknowledged either."""
        send(store, 2)
        consumer = subscribe()
        messages = receive(consumer)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[1], txn=txn)
        with pytest.raises(TransactionConflict) as caught:
            consumer.acknowledge(messages)
        assert caught.value.details["transaction"] == str(txn)
        assert str(txn) in caught.value.message
        assert mark_delete(store) == "1:-1"

    def test_of_another_message_of_its_entry(self, store: Store, subscribe: Subscribe) -> None:
        """What is pending is the message, not its batch."""
        send_batch(store, 3)
        consumer = subscribe()
        messages = receive(consumer)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[1], txn=txn)
        consumer.acknowledge([messages[0], messages[2]])
        with pytest.raises(TransactionConflict):
            consumer.acknowledge(MessageId(1, 0))
        store.commit_transaction(txn)
        assert mark_delete(store) == "1:0"

    @pytest.mark.parametrize("is_cumulative", [False, True])
    def test_cumulatively(self, store: Store, subscribe: Subscribe, is_cumulative: bool) -> None:
        """A cumulative one is refused if anything in its range is pending, and not if that lies beyond."""
        send(store, 4)
        consumer = subscribe()
        messages = receive(consumer)
        txn = store.begin_transaction()
        (consumer.acknowledge_cumulative if is_cumulative else consumer.acknowledge)(messages[1], txn=txn)
        with pytest.raises(TransactionConflict):
            consumer.acknowledge_cumulative(messages[2])
        if is_cumulative:
            with pytest.raises(TransactionConflict):
                consumer.acknowledge(messages[0])
        else:
            consumer.acknowledge_cumulative(messages[0])
            assert mark_delete(store) == "1:0"

    def test_of_what_is_acknowledged_nothing_is_pending(self, store: Store, subscribe: Subscribe) -> None:
        """Repeating an acknowledgement below a pending cumulative one covers nothing pending."""
        send(store, 3)
        consumer = subscribe()
        messages = receive(consumer)
        consumer.acknowledge(messages[0])
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(messages[2], txn=txn)
        consumer.acknowledge(messages[0])
        consumer.acknowledge_cumulative(messages[0])
        assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"

    @pytest.mark.parametrize("is_cumulative", [False, True])
    def test_by_force_it_aborts_the_transaction_first(
        self, store: Store, subscribe: Subscribe, is_cumulative: bool
    ) -> None:
        """In the same store transaction: its other acknowledgements are released, its messages dropped."""
        send(store, 3)
        consumer = subscribe()
        messages = receive(consumer)
        txn = store.begin_transaction()
        consumer.acknowledge([messages[0], messages[2]], txn=txn)
        send(store, 1, txn)
        before = row_json(store.reports.store_info())["commits"]
        call = consumer.acknowledge_cumulative if is_cumulative else consumer.acknowledge
        call(messages[0], force=True)
        assert row_json(store.reports.store_info())["commits"] == before + 1
        assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"
        assert row_json(store.reports.list_pending_acknowledgements("t", "a")) == []
        assert mark_delete(store) == "1:0"
        assert ids(receive(consumer)) == ["1:1", "1:2"]
        assert [row["kind"] for row in row_json(store.reports.topic_log("t"))][-1] == "abort"

    def test_force_without_a_conflict_is_no_different(self, store: Store, subscribe: Subscribe) -> None:
        """It aborts only what stands in the way."""
        send(store, 2)
        consumer = subscribe()
        messages = receive(consumer)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[1], txn=txn)
        consumer.acknowledge(messages[0], force=True)
        assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"
        assert mark_delete(store) == "1:0"
