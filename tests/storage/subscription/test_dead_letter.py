"""The dead-letter topic: what was redelivered too often goes there, once (semantics section 5)."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, Message, MessageId, Store, SubscriptionType
from storage.errors import InvalidName, InvalidValue
from storage.limits import REDELIVERIES_MAX
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.ending import end_transaction

RU = IsolationLevel.READ_UNCOMMITTED
TYPES = list(SubscriptionType)


def attach(store: Store, count: int | None = None, **more: object) -> Consumer:
    return store.subscribe("t", "a", initial_position=EARLIEST, max_redeliver_count=count, **more)  # type: ignore[arg-type]


def receive(consumer: Consumer, count: int = 99) -> list[Message]:
    return list(consumer.receive_batch(count, timeout=0))


def letters(store: Store, name: str = "t-a-DLQ") -> list[bytes | None]:
    return [message.value for message in store.reader(name)]


class TestSending:
    """After the maximum of redeliveries."""

    @pytest.mark.parametrize("type_", TYPES)
    @pytest.mark.parametrize("count", [0, 1, 3])
    def test_a_message_is_handed_out_once_and_redelivered_so_often(
        self, store: Store, type_: SubscriptionType, count: int
    ) -> None:
        """The next time it goes to the dead-letter topic instead, and what follows is not held up."""
        store.create_producer("t").send(b"poison")
        consumer = attach(store, count, subscription_type=type_)
        for times in range(count + 1):
            (message,) = receive(consumer)
            assert message.redelivery_count == times
            consumer.negative_acknowledge(message, delay=0)
        assert receive(consumer) == []
        assert letters(store) == [b"poison"]
        store.create_producer("t").send(b"next")
        assert [m.value for m in receive(consumer)] == [b"next"]

    def test_poison_that_kills_its_consumer_gets_there(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """The count is raised when a message is handed out, so a consumer need not live to complain."""
        store.create_producer("t").send(b"poison")
        for _ in range(2):
            with Store.open(path, clock=clock) as other:
                attach(other, 1).receive(timeout=1)
        assert receive(attach(store)) == []
        assert letters(store) == [b"poison"]

    def test_copy_and_acknowledgement_are_one_change(self, store: Store) -> None:
        """When the letter is there the message is acknowledged, and each letter is there once."""
        store.create_producer("t").send_batch([b"0", b"1", b"2"])
        consumer = attach(store, 0)
        messages = receive(consumer)
        for message in (messages[0], messages[2]):
            consumer.negative_acknowledge(message, delay=0)
        assert receive(consumer) == []
        assert letters(store) == [b"0", b"2"]
        consumer.acknowledge(messages[1])
        assert row_json(store.reports.subscription_stats("t", "a"))["markDeletePosition"] == "1:0"

    def test_without_a_maximum_nothing_is_sent(self, store: Store) -> None:
        """A message may come for ever, and no topic comes into being."""
        store.create_producer("t").send(b"x")
        consumer = attach(store)
        for times in range(20):
            (message,) = receive(consumer)
            assert message.redelivery_count == times
            consumer.negative_acknowledge(message, delay=0)
        assert store.topics() == ["t"]

    def test_a_letter_says_what_it_was(self, store: Store) -> None:
        """Value, key, event time and properties are kept; topic, subscription and id are added."""
        store.create_producer("t").send_batch(
            [b"0", None], keys=[None, "k"], properties=[None, {"p": "1"}], event_times=[None, 7]
        )
        consumer = attach(store, 0)
        for message in receive(consumer):
            consumer.negative_acknowledge(message, delay=0)
        receive(consumer)
        plain, letter = store.reader("t-a-DLQ")
        assert (letter.value, letter.key, letter.event_time) == (None, b"k", 7)
        origin = {
            "REAL_TOPIC": "persistent://public/default/t",
            "REAL_SUBSCRIPTION": "a",
            "REAL_SUBSCRIPTION_ID": "1",
        }
        assert letter.properties == {"p": "1", **origin, "ORIGIN_MESSAGE_ID": "1:0:1"}
        assert (plain.value, plain.key, plain.event_time) == (b"0", None, None)
        assert plain.properties == {**origin, "ORIGIN_MESSAGE_ID": "1:0:0"}

    def test_letters_have_sequence_ids_of_their_own(self, store: Store) -> None:
        """No id is stored twice under one name (invariant 20)."""
        consumer = attach(store, 0)
        for number in range(3):
            store.create_producer("t").send(b"%d" % number)
            consumer.negative_acknowledge(receive(consumer)[0], delay=0)
            receive(consumer)
        assert letters(store) == [b"0", b"1", b"2"]
        used = [(message.producer_name, message.sequence_id) for message in store.reader("t-a-DLQ")]
        assert len(set(used)) == 3


class TestUndecided:
    """A message of an open transaction, at READ_UNCOMMITTED."""

    @pytest.mark.parametrize("end", ["commit", "abort"])
    def test_the_letter_waits_for_the_transaction(self, store: Store, end: str) -> None:
        """Until its own transaction is decided it is neither sent nor handed out; what follows goes on."""
        txn = store.begin_transaction()
        producer = store.create_producer("t")
        producer.send(b"poison", txn=txn)
        producer.send(b"next")
        consumer = attach(store, 0, subscription_isolation_level=RU, receiver_queue_size=1)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        assert [message.value for message in receive(consumer)] == [b"next"]
        assert store.topics() == ["t"]
        end_transaction(store, end, txn)
        assert receive(consumer) == []
        assert store.topics() == (["t", "t-a-DLQ"] if end == "commit" else ["t"])

    @pytest.mark.parametrize("type_", TYPES)
    def test_an_aborted_message_is_acknowledged_without_a_copy(
        self, store: Store, type_: SubscriptionType
    ) -> None:
        """A letter is a plain message, which every reader would take for committed: dropped and counted instead."""
        txn, producer = store.begin_transaction(), store.create_producer("t")
        producer.send_batch([b"aborted", b"aborted too"], txn=txn)
        end_transaction(store, "abort", txn)
        producer.send(b"plain")
        consumer = attach(store, 0, subscription_isolation_level=RU, subscription_type=type_)
        aborted, _, plain = receive(consumer)
        consumer.negative_acknowledge(plain, delay=0)
        consumer.negative_acknowledge(aborted, delay=0)
        assert [message.value for message in receive(consumer)] in ([], [b"aborted too", b"plain"])
        receive(consumer)
        assert letters(store) == [b"plain"]
        stats = store.reports.subscription_stats("t", "a").row.stats
        assert (stats.msg_aborted_drop_counter, stats.msg_backlog) == (1, 1)
        assert receive(consumer) == []

    def test_messages_of_two_fates_in_one_window(self, store: Store) -> None:
        """Of exhausted messages dispatched together, the committed are copied and the aborted are not."""
        ends, producer = ["commit", "abort", "commit", "abort"], store.create_producer("t")
        for number, end in enumerate(ends):
            txn = store.begin_transaction()
            producer.send(b"%d" % number, txn=txn)
            end_transaction(store, end, txn)
        consumer = attach(store, 0, subscription_isolation_level=RU)
        for message in receive(consumer):
            consumer.negative_acknowledge(message, delay=0)
        assert receive(consumer) == []
        assert letters(store) == [b"0", b"2"]
        stats = store.reports.subscription_stats("t", "a").row.stats
        assert (stats.msg_aborted_drop_counter, stats.msg_backlog) == (2, 0)
        assert row_json(store.reports.subscription_stats("t", "a"))["msgAbortedDropCounter"] == 2

    def test_an_operator_who_gives_an_aborted_message_back_makes_no_letter(self, store: Store) -> None:
        """The same rule, whoever gave the message back."""
        txn = store.begin_transaction()
        store.create_producer("t").send(b"aborted", txn=txn)
        end_transaction(store, "abort", txn)
        consumer = attach(store, 0, subscription_isolation_level=RU)
        (message,) = receive(consumer)
        ids = [message.message_id]
        store.admin.acknowledgements.negative_acknowledge_messages("t", "a", ids, delay=0)
        assert receive(consumer) == []
        assert store.topics() == ["t"]

    def test_a_message_of_an_overdue_transaction_makes_no_letter(
        self, store: Store, clock: ManualClock
    ) -> None:
        """The reaper aborts the transaction on the way of the next dispatch, and the message is dropped."""
        txn = store.begin_transaction(timeout=1)
        store.create_producer("t").send(b"overdue", txn=txn)
        consumer = attach(store, 0, subscription_isolation_level=RU)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        assert receive(consumer) == []
        clock.advance(2)
        assert receive(consumer) == []
        assert store.topics() == ["t"]
        assert store.reports.subscription_stats("t", "a").row.stats.msg_aborted_drop_counter == 1

    def test_a_level_that_changed_makes_no_letter(self, store: Store) -> None:
        """READ_COMMITTED leaves an exhausted message of an aborted transaction out, as any aborted message."""
        txn = store.begin_transaction()
        store.create_producer("t").send(b"aborted", txn=txn)
        consumer = attach(store, 0, subscription_isolation_level=RU)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        consumer.close()
        end_transaction(store, "abort", txn)
        store.admin.subscriptions.update_subscription(
            "t", "a", subscription_isolation_level=IsolationLevel.READ_COMMITTED
        )
        assert receive(attach(store)) == []
        assert store.topics() == ["t"]
        assert store.reports.subscription_stats("t", "a").row.stats.msg_backlog == 0

    def test_order_is_kept_around_it(self, store: Store) -> None:
        """In a batch of which the first message waits, the second comes before what follows the batch."""
        producer = store.create_producer("t")
        producer.send_batch([b"poison", b"1"], txn=store.begin_transaction())
        producer.send(b"2")
        consumer = attach(store, 0, subscription_isolation_level=RU, receiver_queue_size=1)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        assert [message.value for _ in range(2) for message in receive(consumer)] == [b"1", b"2"]


class TestOrder:
    """First deliveries stay in order around a dead letter (invariant 4)."""

    def test_within_a_batch(self, store: Store) -> None:
        """The worn-out message takes no room from the next one of its batch."""
        producer = store.create_producer("t")
        producer.send_batch([b"poison", b"1"])
        producer.send(b"2")
        consumer = attach(store, 0, receiver_queue_size=1)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        assert [message.value for _ in range(2) for message in receive(consumer)] == [b"1", b"2"]
        assert letters(store) == [b"poison"]

    def test_a_batch_of_which_some_are_letters_and_some_are_handed_out(self, store: Store) -> None:
        """Nothing of the letters stays behind in the subscription."""
        store.create_producer("t").send_batch([b"poison", b"1"])
        consumer = attach(store, 0, receiver_queue_size=1)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        consumer.acknowledge(receive(consumer))
        stats = row_json(store.reports.subscription_stats("t", "a"))
        assert (stats["markDeletePosition"], stats["msgBacklog"], stats["unackedMessages"]) == ("1:0", 0, 0)
        consumer.acknowledge_cumulative(MessageId(1, 0, 1))


class TestPolicy:
    """It belongs to the subscription."""

    def test_it_is_durable_and_taken_over(self, store: Store) -> None:
        """A consumer that names none goes by the one there is."""
        store.create_producer("t").send(b"poison")
        attach(store, 0, dead_letter_topic="graveyard").close()
        stats = row_json(store.reports.subscription_stats("t", "a"))
        assert (stats["maxRedeliverCount"], stats["deadLetterTopic"]) == (0, "graveyard")
        consumer = attach(store)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        receive(consumer)
        assert letters(store, "graveyard") == [b"poison"]

    def test_a_change_reaches_the_consumers_attached(self, store: Store) -> None:
        """Every consumer of the subscription goes by the policy as it is now."""
        store.create_producer("t").send(b"poison")
        consumer = attach(store, subscription_type=SubscriptionType.SHARED)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        attach(store, 0)
        assert receive(consumer) == []
        assert letters(store) == [b"poison"]

    def test_a_change_reaches_a_consumer_that_receives_nothing(self, store: Store) -> None:
        """An exhausted message becomes a letter although its key is blocked, and no message can be delivered."""
        store.create_producer("t").send_batch([b"first", b"poison"], keys=["k", "k"])
        consumer = attach(store, subscription_type=SubscriptionType.KEY_SHARED)
        first, poison = receive(consumer)
        consumer.negative_acknowledge(poison, delay=0)
        consumer.negative_acknowledge(first, delay=60)
        attach(store, 0)
        assert receive(consumer) == []
        assert letters(store) == [b"poison"]

    @pytest.mark.parametrize("name", ["../x", "a/b", "", "x" * 129])
    def test_a_bad_topic_is_refused_at_once(self, store: Store, name: str) -> None:
        """Not when the first letter is due."""
        with pytest.raises(InvalidName):
            attach(store, 1, dead_letter_topic=name)
        assert row_json(store.reports.list_subscriptions("t")) == []

    def test_a_made_up_name_that_is_too_long_is_refused_at_once(self, store: Store) -> None:
        """`topic-subscription-DLQ` must be a name."""
        store.create_topic("x" * 100)
        with pytest.raises(InvalidName):
            store.subscribe("x" * 100, "y" * 100, max_redeliver_count=1)
        store.subscribe("x" * 100, "y" * 100, max_redeliver_count=1, dead_letter_topic="graveyard")

    def test_a_topic_is_not_its_own_graveyard(self, store: Store) -> None:
        """Poison would go round for ever."""
        for name in ("t", "persistent://public/default/t"):
            with pytest.raises(InvalidValue):
                attach(store, 1, dead_letter_topic=name)

    @pytest.mark.parametrize("count", [-1, REDELIVERIES_MAX + 1, 1 << 70])
    def test_a_count_out_of_bounds_is_refused(self, store: Store, count: int) -> None:
        """Zero is the least: never redelivered."""
        with pytest.raises(InvalidValue):
            attach(store, count)
