"""Acknowledgements that wait for their transaction: conflicts, commit, abort (semantics section 5)."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, Message, MessageId, Store, SubscriptionType, TxnID
from storage.disk.view import WriteBatch
from storage.errors import NotDeliverable, ObjectHeld, TransactionConflict
from storage.process.clock import ManualClock
from storage.subscription import catalogue as subscriptions, pending_ack
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics
from storage.values.position import Position
from tests.row_json import row_json
from tests.storage.lmdb_operations import counted

RC, RU = IsolationLevel
EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType
TYPES = list(SubscriptionType)
ORDERED = [EXCLUSIVE, FAILOVER]


def attach(store: Store, type_: SubscriptionType = EXCLUSIVE, level: IsolationLevel = RC) -> Consumer:
    return store.subscribe(
        "t", "a", subscription_type=type_, subscription_isolation_level=level, initial_position=EARLIEST
    )


def handed(store: Store, count: int, type_: SubscriptionType = EXCLUSIVE) -> tuple[Consumer, list[Message]]:
    """A consumer that has received so many messages, an entry each."""
    producer = store.create_producer("t")
    for number in range(count):
        producer.send(b"%d" % number)
    consumer = attach(store, type_)
    return consumer, list(consumer.receive_batch(count, timeout=0))


def ids(consumer: Consumer) -> list[str]:
    return [str(message.message_id) for message in consumer.receive_batch(99, timeout=0)]


def mark_delete(store: Store) -> str:
    found: str = row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"]
    return found


class TestPending:
    """Until the transaction ends."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_pending_messages_go_to_nobody(self, store: Store, type_: SubscriptionType) -> None:
        """Neither to the consumer that acknowledged them nor to its successor; the cursor waits."""
        consumer, messages = handed(store, 3, type_)
        txn = store.begin_transaction()
        consumer.acknowledge([messages[0], messages[2]], txn=txn)
        assert ids(consumer) == []
        consumer.close()
        with attach(store, type_) as successor:
            assert ids(successor) == ["1:1"]
        assert mark_delete(store) == "1:-1"
        assert row_json(store.reports.subscription_stats("t", "a"))["pending"] == 2

    def test_a_cumulative_one_holds_its_whole_range(self, store: Store) -> None:
        """What was never received and lies below is pending too."""
        consumer, _ = handed(store, 1)
        store.create_producer("t").send_batch([b"1", b"2", b"3"])
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(MessageId(1, 1, 1), txn=txn)
        assert ids(consumer) == ["1:1:2"]
        assert row_json(store.reports.subscription_stats("t", "a"))["pending"] == 3

    def test_a_cumulative_one_within_a_batch_leaves_what_is_pending_behind_it(self, store: Store) -> None:
        """It absorbs pending messages of its transaction only as far as it reaches, also within an entry."""
        store.create_producer("t").send_batch([b"0", b"1", b"2"])
        consumer, txn = attach(store, EXCLUSIVE), store.begin_transaction()
        consumer.acknowledge(MessageId(1, 0, 2), txn=txn)
        consumer.acknowledge_cumulative(MessageId(1, 0, 0), txn=txn)
        assert row_json(store.reports.subscription_stats("t", "a"))["pending"] == 2
        store.commit_transaction(txn)
        assert ids(consumer) == ["1:0:1"]
        consumer.acknowledge(MessageId(1, 0, 1))
        assert mark_delete(store) == "1:0"

    @pytest.mark.parametrize("force", [False, True])
    def test_a_cumulative_one_of_acknowledged_messages_holds_nothing(self, store: Store, force: bool) -> None:
        """A plain acknowledgement goes on past the range and aborts no transaction; the commit has nothing to do."""
        store.create_producer("t").send_batch([b"0", b"1", b"2"])
        consumer, txn = attach(store, EXCLUSIVE), store.begin_transaction()
        consumer.acknowledge_cumulative(MessageId(1, 0, 0))
        consumer.acknowledge_cumulative(MessageId(1, 0, 0), txn=txn)
        assert row_json(store.reports.list_pending_acknowledgements("t", "a")) == []
        consumer.acknowledge_cumulative(MessageId(1, 0, 1), force=force)
        assert row_json(store.reports.show_transaction(txn))["state"] == "OPEN"
        assert ids(consumer) == ["1:0:2"]
        store.admin.transactions.abort_transaction(txn)
        consumer.acknowledge_cumulative(MessageId(1, 0, 2))
        assert mark_delete(store) == "1:0"

    def test_they_are_listed(self, store: Store) -> None:
        """What is pending, of which kind, in which transaction."""
        consumer, messages = handed(store, 3)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge_cumulative(messages[0], txn=one)
        consumer.acknowledge(messages[2], txn=two)
        rows = row_json(store.reports.list_pending_acknowledgements("t", "a"))
        assert [(row["messageId"], row["kind"], row["txnId"]) for row in rows] == [
            ("1:0", "cumulative", str(one)), ("1:2", "individual", str(two)),
        ]  # fmt: skip
        parts = [
            part
            for part in row_json(store.reports.show_transaction(two))["parts"]
            if part["kind"] == "subscription"
        ]
        assert [(part["subscription"], part["positions"]) for part in parts] == [("a", ["1:2"])]

    @pytest.mark.parametrize("what", ["seek", "type", "delete", "unsubscribe", "topic"])
    def test_what_holds_it_is_not_pulled_away(self, store: Store, what: str) -> None:
        """Seek, type change, deletion and unsubscribing are refused while something is pending, naming the holder."""
        consumer, messages = handed(store, 2)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[0], txn=txn)
        admin = store.admin
        if what != "unsubscribe":
            consumer.close()
        calls = {
            "seek": lambda: row_json(admin.subscriptions.seek_subscription("t", "a", EARLIEST)),
            "type": lambda: row_json(
                admin.subscriptions.update_subscription("t", "a", subscription_type=SHARED)
            ),
            "delete": lambda: row_json(admin.subscriptions.delete_subscription("t", "a")),
            "unsubscribe": consumer.unsubscribe,
            "topic": lambda: row_json(admin.topics.delete_topic("t")),
        }
        with pytest.raises(ObjectHeld) as caught:
            calls[what]()
        assert str(txn) in caught.value.message
        store.commit_transaction(txn)
        assert mark_delete(store) == "1:0"

    @pytest.mark.parametrize("what", ["seek", "type", "delete", "topic"])
    def test_by_force_it_is_aborted_first(self, store: Store, what: str) -> None:
        """The transaction is aborted whole, then the change is made."""
        consumer, messages = handed(store, 2)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[0], txn=txn)
        consumer.close()
        admin = store.admin
        calls = {
            "seek": lambda: row_json(admin.subscriptions.seek_subscription("t", "a", EARLIEST, force=True)),
            "type": lambda: row_json(
                admin.subscriptions.update_subscription("t", "a", subscription_type=SHARED, force=True)
            ),
            "delete": lambda: row_json(admin.subscriptions.delete_subscription("t", "a", force=True)),
            "topic": lambda: row_json(admin.topics.delete_topic("t", force=True)),
        }
        assert calls[what]()["transactionsAborted"] == [str(txn)]
        assert row_json(store.reports.show_transaction(txn))["state"] == "ABORTED"

    def test_a_change_of_level_does_not_mind(self, store: Store) -> None:
        """The level may change while something is pending, and the transaction can still end either way."""
        for end in (store.commit_transaction, store.admin.transactions.abort_transaction):
            open_txn, txn = store.begin_transaction(), store.begin_transaction()
            store.create_producer("t").send(b"x", txn=open_txn)
            with attach(store, level=RU) as consumer:
                messages = consumer.receive_batch(99, timeout=0)
                consumer.acknowledge(messages[-1], txn=txn)
            store.admin.transactions.abort_transaction(open_txn)
            with attach(store, level=RC) as consumer:
                assert ids(consumer) == []
                end(txn)
                assert ids(consumer) == []


class TestIndividualConflicts:
    """Acknowledged already, or pending in any transaction: TransactionConflict."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_an_acknowledged_message(self, store: Store, type_: SubscriptionType) -> None:
        """At or below markDeletePosition, and ahead of it."""
        consumer, messages = handed(store, 3, type_)
        consumer.acknowledge([messages[0], messages[2]])
        for index in (0, 2):
            with pytest.raises(TransactionConflict):
                consumer.acknowledge(messages[index], txn=store.begin_transaction())

    @pytest.mark.parametrize("type_", TYPES)
    def test_one_that_is_pending_elsewhere(self, store: Store, type_: SubscriptionType) -> None:
        """A message is consumed by at most one transaction (invariant 20); the holder is named."""
        consumer, (message, _) = handed(store, 2, type_)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge(message, txn=one)
        with pytest.raises(TransactionConflict) as caught:
            consumer.acknowledge(message, txn=two)
        assert caught.value.details["transaction"] == str(one)
        store.commit_transaction(one)
        with pytest.raises(TransactionConflict):
            consumer.acknowledge(message, txn=two)

    def test_one_that_is_pending_in_the_same_transaction(self, store: Store) -> None:
        """Repeating it is a conflict too, within one call and in the next."""
        consumer, (message, other) = handed(store, 2)
        txn = store.begin_transaction()
        consumer.acknowledge(message, txn=txn)
        with pytest.raises(TransactionConflict):
            consumer.acknowledge([other, message], txn=txn)
        assert row_json(store.reports.subscription_stats("t", "a"))["pending"] == 1

    def test_it_is_judged_by_batch_index(self, store: Store) -> None:
        """Two transactions may each hold messages of one entry, but not the same ones."""
        store.create_producer("t").send_batch([b"0", b"1", b"2"])
        consumer = attach(store)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge([MessageId(1, 0, 0), MessageId(1, 0, 2)], txn=one)
        consumer.acknowledge(MessageId(1, 0, 1), txn=two)
        for txn in (one, two):
            with pytest.raises(TransactionConflict):
                consumer.acknowledge(MessageId(1, 0), txn=txn)
        store.commit_transaction(one)
        store.admin.transactions.abort_transaction(two)
        assert ids(consumer) == ["1:0:1"]

    def test_one_below_a_cumulative_one(self, store: Store) -> None:
        """A pending cumulative acknowledgement holds everything below it, for its own transaction too."""
        consumer, messages = handed(store, 3)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge_cumulative(messages[1], txn=one)
        for txn in (one, two):
            with pytest.raises(TransactionConflict):
                consumer.acknowledge(messages[0], txn=txn)
        consumer.acknowledge(messages[2], txn=two)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_cumulative_one_below_a_message_of_its_batch_that_is_acknowledged(
    store: Store, in_transaction: bool
) -> None:
    """The first message of the first entry left, of which a later one is acknowledged."""
    store.create_producer("t").send_batch([b"0", b"1", b"2"])
    consumer, txn = attach(store, EXCLUSIVE), store.begin_transaction()
    consumer.acknowledge(MessageId(1, 0, 1))
    consumer.acknowledge_cumulative(MessageId(1, 0, 0), txn=txn if in_transaction else None)
    store.commit_transaction(txn)
    assert ids(consumer) == ["1:0:2"]
    consumer.acknowledge_cumulative(MessageId(1, 0, 1))
    consumer.acknowledge(MessageId(1, 0, 2))
    assert mark_delete(store) == "1:0"


class TestCumulativeConflicts:
    """A cumulative one conflicts in fewer cases, and otherwise moves up and absorbs."""

    def test_at_or_below_mark_delete(self, store: Store) -> None:
        """There is nothing left to acknowledge."""
        consumer, messages = handed(store, 3)
        consumer.acknowledge_cumulative(messages[1])
        for index in (0, 1):
            with pytest.raises(TransactionConflict):
                consumer.acknowledge_cumulative(messages[index], txn=store.begin_transaction())

    def test_at_or_below_its_own_earlier_position(self, store: Store) -> None:
        """It never moves down, within a batch neither."""
        store.create_producer("t").send_batch([b"0", b"1", b"2"])
        consumer, _ = handed(store, 2)
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(MessageId(1, 0, 1), txn=txn)
        for index in (0, 1):
            with pytest.raises(TransactionConflict):
                consumer.acknowledge_cumulative(MessageId(1, 0, index), txn=txn)
        consumer.acknowledge_cumulative(MessageId(1, 0, 2), txn=txn)
        with pytest.raises(TransactionConflict):
            consumer.acknowledge_cumulative(MessageId(1, 0, 2), txn=txn)
        consumer.acknowledge_cumulative(MessageId(1, 1), txn=txn)
        store.commit_transaction(txn)
        assert mark_delete(store) == "1:1"

    def test_over_another_transactions_pending_message(self, store: Store) -> None:
        """Refused, naming the holder; just below it, accepted."""
        consumer, messages = handed(store, 4)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge(messages[2], txn=one)
        for index in (2, 3):
            with pytest.raises(TransactionConflict) as caught:
                consumer.acknowledge_cumulative(messages[index], txn=two)
            assert caught.value.details["transaction"] == str(one)
        consumer.acknowledge_cumulative(messages[1], txn=two)

    def test_one_transaction_at_a_time(self, store: Store) -> None:
        """A second transaction's cumulative one is refused wherever it ends, until the first has ended."""
        consumer, messages = handed(store, 4)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge_cumulative(messages[1], txn=one)
        for index in (0, 1, 3):
            with pytest.raises(TransactionConflict):
                consumer.acknowledge_cumulative(messages[index], txn=two)
        store.commit_transaction(one)
        consumer.acknowledge_cumulative(messages[3], txn=two)

    def test_over_acknowledged_messages_it_is_none(self, store: Store) -> None:
        """What was acknowledged one by one lies in its range like any other."""
        consumer, messages = handed(store, 3)
        consumer.acknowledge([messages[1], messages[2]])
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(messages[2], txn=txn)
        store.commit_transaction(txn)
        assert mark_delete(store) == "1:2"

    @pytest.mark.parametrize("committed", [True, False])
    def test_it_absorbs_what_its_transaction_had_pending(self, store: Store, committed: bool) -> None:
        """Its own individual acknowledgements below it become part of it."""
        consumer, messages = handed(store, 4)
        txn = store.begin_transaction()
        consumer.acknowledge([messages[0], messages[3]], txn=txn)
        consumer.acknowledge_cumulative(messages[2], txn=txn)
        assert row_json(store.reports.subscription_stats("t", "a"))["pending"] == 4
        assert {
            row["messageId"] for row in row_json(store.reports.list_pending_acknowledgements("t", "a"))
        } == {
            "1:2",
            "1:3",
        }
        (store.commit_transaction if committed else store.admin.transactions.abort_transaction)(txn)
        assert mark_delete(store) == ("1:3" if committed else "1:-1")
        assert ids(consumer) == ([] if committed else ["1:0", "1:1", "1:2", "1:3"])


class TestCommit:
    """Commit applies all."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_what_a_committed_transaction_acknowledged_never_comes_again(
        self, store: Store, type_: SubscriptionType
    ) -> None:
        """The rest comes, to a new consumer too (invariant 7)."""
        consumer, messages = handed(store, 4, type_)
        with store.transaction() as txn:
            consumer.acknowledge([messages[0], messages[2]], txn=txn)
        assert mark_delete(store) == "1:0"
        consumer.close()
        assert ids(attach(store, type_)) == ["1:1", "1:3"]

    def test_on_several_subscriptions_at_one_instant(self, store: Store) -> None:
        """Two subscriptions of two topics move together (invariant 6)."""
        store.create_topic("u")
        consumers = []
        for topic in ("t", "u"):
            store.create_producer(topic).send(b"x")
            consumers.append(store.subscribe(topic, "a", initial_position=EARLIEST))
        txn = store.begin_transaction()
        for consumer in consumers:
            consumer.acknowledge_cumulative(consumer.receive(timeout=1), txn=txn)
        for topic, mark in (("t", "1:-1"), ("u", "1:-1")):
            assert row_json(store.reports.subscription_stats(topic, "a"))["markDeletePosition"] == mark
        store.commit_transaction(txn)
        for topic in ("t", "u"):
            assert row_json(store.reports.subscription_stats(topic, "a"))["markDeletePosition"] == "1:0"

    def test_of_an_uncommitted_message(self, store: Store) -> None:
        """At READ_UNCOMMITTED the acknowledgement does not depend on the message's own fate."""
        other, txn = store.begin_transaction(), store.begin_transaction()
        store.create_producer("t").send(b"open", txn=other)
        consumer = attach(store, level=RU)
        consumer.acknowledge(consumer.receive(timeout=1), txn=txn)
        store.commit_transaction(txn)
        store.admin.transactions.abort_transaction(other)
        assert mark_delete(store) == "1:0"


class TestAbort:
    """Abort releases all."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_released_messages_come_again(self, store: Store, type_: SubscriptionType) -> None:
        """They are pending nowhere and deliverable, and count as handed out before (invariant 7)."""
        consumer, messages = handed(store, 2, type_)
        txn = store.begin_transaction()
        consumer.acknowledge(messages, txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert row_json(store.reports.list_pending_acknowledgements("t", "a")) == []
        again = consumer.receive_batch(9, timeout=0)
        assert [(str(m.message_id), m.redelivery_count) for m in again] == [("1:0", 1), ("1:1", 1)]
        consumer.acknowledge(again, txn=store.begin_transaction())

    @pytest.mark.parametrize("type_", [SHARED, KEY_SHARED])
    def test_on_shared_types_the_rest_stays_in_flight(self, store: Store, type_: SubscriptionType) -> None:
        """Only what was released goes round again."""
        consumer, messages = handed(store, 3, type_)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[1], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert ids(consumer) == ["1:1"]

    @pytest.mark.parametrize("type_", ORDERED)
    def test_on_ordered_types_delivery_restarts_there(self, store: Store, type_: SubscriptionType) -> None:
        """Everything in flight from the first released message on is withdrawn, and nothing before it."""
        consumer, messages = handed(store, 5, type_)
        txn = store.begin_transaction()
        consumer.acknowledge([messages[2], messages[3]], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert row_json(store.reports.subscription_stats("t", "a"))["unackedMessages"] == 2
        assert ids(consumer) == ["1:2", "1:3", "1:4"]

    def test_within_a_batch_it_restarts_at_the_message(self, store: Store) -> None:
        """What lies before the first released message in its entry stays in flight."""
        store.create_producer("t").send_batch([b"0", b"1", b"2"])
        consumer = attach(store)
        messages = consumer.receive_batch(9, timeout=0)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[1], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert ids(consumer) == ["1:0:1", "1:0:2"]

    def test_what_is_withdrawn_leaves_the_queue_and_the_rest_stays(self, store: Store) -> None:
        """Messages handed out and not yet received come once each, in order (invariant 19)."""
        consumer, _ = handed(store, 1)
        producer = store.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number)
        consumer.receive(timeout=1)
        txn = store.begin_transaction()
        consumer.acknowledge(MessageId(1, 4), txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert ids(consumer) == ["1:2", "1:3"]
        assert ids(consumer) == ["1:4", "1:5"]

    def test_a_cumulative_one_releases_its_range(self, store: Store) -> None:
        """Delivery restarts at the first message that is not acknowledged."""
        consumer, messages = handed(store, 4)
        consumer.acknowledge([messages[0], messages[2]])
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(messages[3], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert ids(consumer) == ["1:1", "1:3"]

    def test_beside_another_transaction_in_the_same_entry(self, store: Store) -> None:
        """A cumulative one that ends inside a batch releases its part, and leaves what the other one holds."""
        store.create_producer("t").send_batch([b"0", b"1", b"2", b"3"])
        consumer = attach(store)
        consumer.receive_batch(9, timeout=0)
        one, two = store.begin_transaction(), store.begin_transaction()
        consumer.acknowledge(MessageId(1, 0, 3), txn=two)
        consumer.acknowledge_cumulative(MessageId(1, 0, 1), txn=one)
        store.admin.transactions.abort_transaction(one)
        assert ids(consumer) == ["1:0:0", "1:0:1", "1:0:2"]
        store.admin.transactions.abort_transaction(two)
        assert ids(consumer) == ["1:0:3"]

    def test_a_cumulative_one_is_refused_over_what_was_not_handed_out_again(self, store: Store) -> None:
        """Only after the withdrawn messages came again can they be acknowledged at once; one by one at any time."""
        consumer, messages = handed(store, 4)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[1], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        for later in (messages[1], messages[3]):
            for within in (None, store.begin_transaction()):
                with pytest.raises(NotDeliverable):
                    consumer.acknowledge_cumulative(later, txn=within)
        consumer.acknowledge_cumulative(messages[0])
        consumer.acknowledge(messages[1])
        assert mark_delete(store) == "1:1"
        assert ids(consumer) == ["1:2", "1:3"]
        consumer.acknowledge_cumulative(messages[3])
        assert mark_delete(store) == "1:3"

    def test_a_cumulative_one_over_what_was_never_handed_out_is_refused_too(self, store: Store) -> None:
        """The abort takes back messages that dispatch has not met, and that no delivery names."""
        for number in range(4):
            store.create_producer("t").send(b"%d" % number)
        consumer = attach(store)
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(MessageId(1, 3), txn=txn)
        store.admin.transactions.abort_transaction(txn)
        with pytest.raises(NotDeliverable):
            consumer.acknowledge_cumulative(MessageId(1, 2))
        assert ids(consumer) == ["1:0", "1:1", "1:2", "1:3"]
        consumer.acknowledge_cumulative(MessageId(1, 3))
        assert mark_delete(store) == "1:3"

    def test_what_only_reached_the_queue_was_not_handed_out_again(self, store: Store) -> None:
        """A consumer that closes gives back what its application never saw: a cumulative one still may not cover it."""
        consumer, messages = handed(store, 3)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[0], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert str(consumer.receive(timeout=1).message_id) == "1:0"
        consumer.close()
        successor = attach(store)
        with pytest.raises(NotDeliverable):
            successor.acknowledge_cumulative(messages[2])
        assert ids(successor) == ["1:0", "1:1", "1:2"]
        successor.acknowledge_cumulative(messages[2])

    @pytest.mark.parametrize("is_queued", [False, True])
    def test_an_operator_who_gives_it_back_does_not_hand_it_out(
        self, store: Store, clock: ManualClock, is_queued: bool
    ) -> None:
        """Given back by an operator, every withdrawn message still has to come again, also from a consumer's queue."""
        consumer, messages = handed(store, 3)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[0], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        if is_queued:
            assert str(consumer.receive(timeout=1).message_id) == "1:0"
        given = store.admin.acknowledgements.negative_acknowledge_messages(
            "t", "a", [message.message_id for message in messages], delay=30
        )
        assert given.given_back == 3
        for within in (None, store.begin_transaction()):
            with pytest.raises(NotDeliverable):
                consumer.acknowledge_cumulative(messages[2], txn=within)
        clock.advance(30)
        assert ids(consumer) == ["1:0", "1:1", "1:2"]
        consumer.acknowledge_cumulative(messages[2])
        assert mark_delete(store) == "1:2"

    def test_an_operator_who_evicts_does_not_hand_it_out(self, store: Store) -> None:
        """Nobody knows how much of its queue the application of the evicted consumer has received."""
        consumer, messages = handed(store, 3)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[0], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert str(consumer.receive(timeout=1).message_id) == "1:0"
        store.admin.subscriptions.evict_consumers("t", "a")
        successor = attach(store)
        with pytest.raises(NotDeliverable):
            successor.acknowledge_cumulative(messages[2])
        assert ids(successor) == ["1:0", "1:1", "1:2"]
        successor.acknowledge_cumulative(messages[2])

    def test_a_consumer_that_gives_it_back_has_received_it(self, store: Store) -> None:
        """What came again counts as handed out, also after the consumer has given it back itself."""
        consumer, messages = handed(store, 3)
        txn = store.begin_transaction()
        consumer.acknowledge(messages[0], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        assert ids(consumer) == ["1:0", "1:1", "1:2"]
        consumer.negative_acknowledge(messages[1])
        consumer.acknowledge_cumulative(messages[2])
        assert mark_delete(store) == "1:2"

    def test_a_timeout_is_such_an_abort(self, store: Store, clock: object) -> None:
        """Every abort, whatever its reason, is the same complete abort."""
        consumer, messages = handed(store, 3)
        txn = store.begin_transaction(timeout=5)
        consumer.acknowledge(messages[0], txn=txn)
        clock.advance(6)  # type: ignore[attr-defined]
        store.create_producer("t").send(b"writer")
        assert ids(consumer) == ["1:0", "1:1", "1:2", "1:3"]

    def test_an_acknowledgement_may_be_made_again_in_another_transaction(self, store: Store) -> None:
        """What an abort released can be consumed by the next transaction, once."""
        consumer, messages = handed(store, 1)
        for end in (
            store.admin.transactions.abort_transaction,
            store.admin.transactions.abort_transaction,
            store.commit_transaction,
        ):
            txn: TxnID = store.begin_transaction()
            consumer.acknowledge(messages[0], txn=txn)
            end(txn)
        assert mark_delete(store) == "1:0"


def test_holders_up_to_a_message_are_found_without_the_records_behind_it(store: Store) -> None:
    """Each pending message is an entry of its own here, with a record of its own."""
    with store.create_producer("t") as producer:
        for _ in range(300):
            producer.send_batch([b"0", b"1"])
    txns = [store.begin_transaction() for _ in range(2)]
    with attach(store, SubscriptionType.SHARED) as consumer:
        messages = consumer.receive_batch(600, timeout=0)
        consumer.acknowledge(messages[4:7], txn=txns[0])
        consumer.acknowledge(messages[7:], txn=txns[1])

        def find(batch: WriteBatch) -> list[object]:
            subscription = subscriptions.get(batch, topics.get(batch, "t"), "a")
            opened, entries = OpenSubscription(batch, subscription), [Position(1, at) for at in range(300)]
            return [
                pending_ack.holders_through(opened, MessageId(1, 3, 0)),
                pending_ack.holders_through(opened, MessageId(1, 3, 1)),
                pending_ack.holders_through(opened, MessageId(1, 299, -1), 1),
                [pending_ack.is_any_through(opened, at) for at in (*entries[:3], entries[299])],
                [pending_ack.holds_through(opened, txns[1].least, at) for at in entries[2:5]],
            ]

        with counted(store) as operations:
            found = store.connection.write(find)
        first, second = (txn.least for txn in txns)
        any_through, held = [False, False, True, True], [False, True, True]
        assert found == [[first], [first, second], [first], any_through, held]
        assert operations.total < 100


def test_holders_in_spans(store: Store) -> None:
    """Entries of one message: the entries of a span up to the message count."""
    consumer, messages = handed(store, 5, SubscriptionType.SHARED)
    txn = store.begin_transaction()
    consumer.acknowledge(messages[2:4], txn=txn)

    def find(batch: WriteBatch) -> list[list[int]]:
        opened = OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "a"))
        return [pending_ack.holders_through(opened, MessageId(1, at, -1)) for at in range(4)]

    assert store.connection.write(find) == [[], [], [txn.least], [txn.least]]
    consumer.close()
