"""Redrive: dead letters come back to their subscription, once, with no redeliveries counted (semantics section 5)."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, Message, Store, SubscriptionType
from storage.admin.redrive import DeadLettersRedriven
from storage.errors import InvalidValue, NotDeliverable, ObjectHeld, SubscriptionNotFound, TopicNotFound
from storage.reports.stats import SubscriptionStats
from storage.subscription import redrive as redrives
from tests.storage.ending import end_transaction

TYPES = list(SubscriptionType)
SHARED = SubscriptionType.SHARED


def attach(store: Store, count: int | None = 0, **more: object) -> Consumer:
    return store.subscribe("t", "a", initial_position=EARLIEST, max_redeliver_count=count, **more)  # type: ignore[arg-type]


def receive(consumer: Consumer, count: int = 99) -> list[Message]:
    return list(consumer.receive_batch(count, timeout=0))


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value for message in messages]


def bury(consumer: Consumer, *doomed: bytes) -> None:
    """Give messages back until they are letters; acknowledge every other one."""
    while messages := receive(consumer):
        for message in messages:
            if message.value in doomed:
                consumer.negative_acknowledge(message, delay=0)
            else:
                consumer.acknowledge(message)


def redrive(store: Store, count: int | None = None, **more: object) -> DeadLettersRedriven:
    return store.admin.subscriptions.redrive_dead_letters("t", "a", count, **more).effects.change  # type: ignore[arg-type]


def stats(store: Store) -> SubscriptionStats:
    return store.reports.subscription_stats("t", "a").row.stats


def check(store: Store) -> None:
    assert store.maintenance.verify_store() == []


def test_before_the_first_dead_letter_there_is_nothing_to_give_back(store: Store) -> None:
    """The store makes the topic with the first one; a topic that is named must be there."""
    attach(store).close()
    assert (redrive(store).redriven, redrive(store).in_backlog) == (0, 0)
    with pytest.raises(TopicNotFound):
        redrive(store, dead_letter_topic="letters")
    assert not store.has_topic("t-a-DLQ")


def test_letters_whose_originals_are_trimmed_are_counted(store: Store) -> None:
    """They stay in the dead-letter topic."""
    consumer = attach(store)
    store.create_producer("t").send(b"poison")
    bury(consumer, b"poison")
    consumer.close()
    store.admin.topics.truncate_topic("t")
    done = redrive(store)
    assert (done.redriven, done.originals_gone) == (0, 1)
    assert len(list(store.reader(done.dead_letter_topic))) == 1
    check(store)


class TestGivingBack:
    """Dead letters return to their subscription."""

    @pytest.mark.parametrize("type_", TYPES)
    @pytest.mark.parametrize("is_attached", [True, False])
    def test_letters_come_again_with_their_count_reset(
        self, store: Store, type_: SubscriptionType, is_attached: bool
    ) -> None:
        """In the order of the log, to the consumer attached, and to no second subscription."""
        store.create_producer("t").send_batch([b"0", b"1", b"2"], keys=["k", "k", "l"])
        store.create_producer("t").send(b"3", key="k")
        consumer, other = attach(store, subscription_type=type_), store.subscribe("t", "b")
        bury(consumer, b"1", b"3")
        if not is_attached:
            consumer.close()
        assert stats(store).msg_backlog == 0
        assert redrive(store) == DeadLettersRedriven("persistent://public/default/t-a-DLQ", 2, 0, 0)
        assert (stats(store).msg_backlog, stats(store).visible) == (2, 2)
        check(store)
        consumer = consumer if is_attached else attach(store, subscription_type=type_)
        again = receive(consumer)
        assert [(message.value, message.redelivery_count) for message in again] == [(b"1", 0), (b"3", 0)]
        consumer.acknowledge(again)
        assert (stats(store).msg_backlog, stats(store).acknowledged_ahead) == (0, 0)
        assert receive(consumer) == receive(other) == []
        check(store)

    def test_the_maximum_holds_anew(self, store: Store) -> None:
        """A redriven message that fails again is a letter again, and is redriven again."""
        store.create_producer("t").send(b"poison")
        consumer = attach(store, 1)
        for _ in range(3):
            for times in range(2):
                (message,) = receive(consumer)
                assert message.redelivery_count == times
                consumer.negative_acknowledge(message, delay=0)
            assert receive(consumer) == []
            assert redrive(store).redriven == 1
        assert len(list(store.reader("t-a-DLQ"))) == 3

    def test_a_letter_is_redriven_once(self, store: Store) -> None:
        """Also after the message was acknowledged; and `-n` takes the oldest first, inside batches too."""
        store.create_producer("t").send_batch([b"0", b"1", b"2", b"3", b"4"])
        consumer = attach(store, subscription_type=SHARED)
        bury(consumer, b"0", b"1", b"3", b"4")
        for expected in ([b"0"], [b"1", b"3"], [b"4"], []):
            assert redrive(store, max(len(expected), 1)).redriven == len(expected)
            again = receive(consumer)
            assert values(again) == expected
            consumer.acknowledge(again)
            check(store)
        assert redrive(store) == DeadLettersRedriven("persistent://public/default/t-a-DLQ", 0, 0, 0)

    def test_it_takes_steps(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each a store transaction with a record in the audit trail; a dry run counts the same and changes nothing."""
        monkeypatch.setattr(redrives, "REDRIVE_STEP_MESSAGES", 2)
        producer = store.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number)
        consumer = attach(store)
        bury(consumer, *(b"%d" % number for number in range(5)))
        before, batches = store.connection.environment.last_commit(), []
        step = redrives.Redrive.step
        monkeypatch.setattr(
            redrives.Redrive, "step", lambda self: batches.append(self._opened.view) or step(self)
        )
        assert redrive(store, dry_run=True).redriven == 5
        assert store.connection.environment.last_commit() == before
        assert len(set(map(id, batches))) == len(batches) == 3
        assert redrive(store, reason="mended").redriven == 5
        records = [record for record in store.reports.list_audit_records(9) if "redrive" in record.action]
        assert [(record.reason, dict(record.effects)["redriven"]) for record in records] == [
            ("mended", 1),
            ("mended", 2),
            ("mended", 2),
        ]
        assert len(receive(consumer)) == 5

    @pytest.mark.parametrize("step_messages", [1, 2, 100])
    def test_a_dry_run_counts_two_letters_of_one_message_as_the_redrive_does(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, step_messages: int
    ) -> None:
        """A message that came to the dead-letter topic twice is given back once, whichever steps find its letters."""
        monkeypatch.setattr(redrives, "REDRIVE_STEP_MESSAGES", step_messages)
        store.create_producer("t").send_batch([b"0", b"1", b"2"])
        for _ in range(2):
            consumer = attach(store)
            bury(consumer, b"0", b"1", b"2")
            consumer.close()
            store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        consumer = attach(store)
        bury(consumer)
        dry = redrive(store, dry_run=True)
        assert dry == redrive(store)
        assert (dry.redriven, dry.in_backlog) == (3, 3)
        assert values(receive(consumer)) == [b"0", b"1", b"2"]
        check(store)

    def test_over_ledgers(self, store: Store) -> None:
        """markDeletePosition moves back over closed ledgers, and forward again at once after the acknowledgement."""
        store.admin.topics.delete_topic("t")
        store.create_topic("t", ledger_entries_max=3)
        producer = store.create_producer("t")
        for number in range(20):
            producer.send(b"%d" % number)
        consumer = attach(store)
        bury(consumer, b"2", b"3", b"13")
        mark = stats(store).mark_delete_position
        assert redrive(store).redriven == 3
        assert stats(store).visible == 3
        check(store)
        again = receive(consumer)
        assert values(again) == [b"2", b"3", b"13"]
        consumer.acknowledge(again)
        assert stats(store).mark_delete_position == mark
        check(store)

    def test_letters_of_transactions(self, store: Store) -> None:
        """Around markers and aborted messages every class of the backlog stays exact, at both levels."""
        producer = store.create_producer("t")
        for end in ("commit", "abort", "commit"):
            txn = store.begin_transaction()
            producer.send_batch([b"poison", b"x"], txn=txn)
            end_transaction(store, end, txn)
        consumer = attach(store, subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED)
        bury(consumer, b"poison")
        open_ = store.begin_transaction()
        producer.send(b"open", txn=open_)
        (message,) = receive(consumer)
        consumer.acknowledge(message)
        consumer.close()
        assert redrive(store).redriven == 2
        check(store)
        store.admin.subscriptions.update_subscription(
            "t", "a", subscription_isolation_level=IsolationLevel.READ_COMMITTED
        )
        check(store)
        again = receive(attach(store))
        assert values(again) == [b"poison", b"poison"]


class TestOrder:
    """Messages that are with consumers while letters come back."""

    def test_delivery_in_order_restarts_at_the_first_letter(self, store: Store) -> None:
        """As after an abort: messages taken ahead are withdrawn, and no cumulative acknowledgement passes the letter."""
        producer = store.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number)
        with attach(store, 0) as consumer:
            consumer.negative_acknowledge(receive(consumer, 1)[0], delay=0)
        with attach(store, 0) as consumer:
            consumer.receive_batch(0, timeout=0)
        consumer = attach(store, 9)
        ahead = receive(consumer, 2)
        assert values(ahead) == [b"1", b"2"]
        assert redrive(store).redriven == 1
        with pytest.raises(NotDeliverable):
            consumer.acknowledge_cumulative(ahead[-1])
        again = receive(consumer)
        assert values(again) == [b"0", b"1", b"2", b"3", b"4"]
        consumer.acknowledge_cumulative(again[-1])
        assert stats(store).msg_backlog == 0

    def test_a_letter_holds_its_key(self, store: Store) -> None:
        """Key_Shared: messages of its key that wait in a queue go back behind the letter."""
        producer = store.create_producer("t")
        for number in range(4):
            producer.send(b"%d" % number, key="k")
        consumer = attach(store, 0, subscription_type=SubscriptionType.KEY_SHARED, receiver_queue_size=1)
        consumer.negative_acknowledge(receive(consumer, 1)[0], delay=0)
        consumer.acknowledge(receive(consumer, 1))
        consumer.close()
        consumer = attach(store, 9)
        consumer.acknowledge(receive(consumer, 1))
        assert redrive(store).redriven == 1
        assert values(receive(consumer)) == [b"0", b"3"]
        check(store)


class TestProvenance:
    """Which letters belong to a subscription."""

    def test_only_its_own_letters_go_back(self, store: Store) -> None:
        """One dead-letter topic for two subscriptions, and a message that a producer made look like a letter."""
        store.create_producer("t").send(b"poison")
        for name in ("a", "b"):
            with store.subscribe(
                "t", name, initial_position=EARLIEST, max_redeliver_count=0, dead_letter_topic="grave"
            ) as consumer:
                bury(consumer, b"poison")
        (letter, _) = store.reader("grave")
        store.create_producer("grave").send(b"forged", properties=letter.properties)
        assert redrive(store).redriven == 1
        assert redrive(store).redriven == 0
        assert store.reports.subscription_stats("t", "b").row.stats.msg_backlog == 0

    def test_a_subscription_created_again_is_another_one(self, store: Store) -> None:
        """Letters of the deleted subscription are not its letters."""
        store.create_producer("t").send(b"poison")
        with attach(store) as consumer:
            bury(consumer, b"poison")
        store.admin.subscriptions.delete_subscription("t", "a")
        with attach(store) as consumer:
            consumer.acknowledge(receive(consumer))
        assert redrive(store).redriven == 0
        assert stats(store).msg_backlog == 0

    def test_a_message_that_is_in_the_backlog_already_is_not_given_back_twice(self, store: Store) -> None:
        """After a seek."""
        store.create_producer("t").send(b"poison")
        with attach(store) as consumer:
            bury(consumer, b"poison")
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        assert redrive(store) == DeadLettersRedriven("persistent://public/default/t-a-DLQ", 0, 1, 0)
        assert values(receive(attach(store))) == [b"poison"]
        check(store)

    def test_letters_in_a_former_dead_letter_topic(self, store: Store) -> None:
        """Are redriven where that topic is named; each topic has its own place."""
        producer = store.create_producer("t")
        for name in ("one", "two"):
            producer.send(b"poison")
            with attach(store, dead_letter_topic=name) as consumer:
                bury(consumer, b"poison")
        assert redrive(store).redriven == 1
        assert redrive(store, dead_letter_topic="one").redriven == 1
        assert redrive(store, dead_letter_topic="one").redriven == redrive(store).redriven == 0


class TestRefusal:
    """Redrive that cannot be done."""

    def test_nothing_to_find(self, store: Store) -> None:
        """No subscription, no count."""
        attach(store).close()
        with pytest.raises(SubscriptionNotFound):
            store.admin.subscriptions.redrive_dead_letters("t", "nobody")
        with pytest.raises(InvalidValue):
            redrive(store, 0)

    def test_under_a_pending_cumulative_acknowledgement(self, store: Store) -> None:
        """Its commit would acknowledge the message again: refused, and nothing is changed."""
        producer = store.create_producer("t")
        for value in (b"poison", b"1", b"2"):
            producer.send(value)
        consumer = attach(store)
        consumer.negative_acknowledge(receive(consumer, 1)[0], delay=0)
        consumer.close()
        consumer = attach(store)
        messages = receive(consumer)
        assert values(messages) == [b"1", b"2"]
        txn = store.begin_transaction()
        consumer.acknowledge_cumulative(messages[-1], txn=txn)
        with pytest.raises(ObjectHeld):
            redrive(store)
        store.commit_transaction(txn)
        assert redrive(store).redriven == 1
        assert values(receive(consumer)) == [b"poison"]
