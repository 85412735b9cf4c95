"""The order of a key on Key_Shared, with messages queued ahead at a consumer (invariant 21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage import EARLIEST, Consumer, MessageId, Store, SubscriptionType
from storage.errors import ConsumerEvicted, WriterBusy
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.busy import busy

KEY_SHARED = SubscriptionType.KEY_SHARED
Attach = Callable[..., Consumer]
FIRST = MessageId(1, 0)
"""The message `0` of `sent`."""


@pytest.fixture
def attach(store: Store) -> Attach:
    """Attaches to the Key_Shared subscription `a` of topic `t`, from the beginning."""

    def made(**more: Any) -> Consumer:
        more = {"subscription_type": KEY_SHARED, "initial_position": EARLIEST} | more
        return store.subscribe("t", "a", **more)

    return made


@pytest.fixture
def sent(store: Store) -> None:
    """`0`, `1` and `2` of one key, `other` of another, and `none` without."""
    producer = store.create_producer("t")
    for value, key in (("0", "k"), ("1", "k"), ("other", "l"), ("none", None), ("2", "k")):
        producer.send(value.encode(), key=key)


def receive(consumer: Consumer, count: int = 99) -> list[str]:
    """The values of the next messages."""
    return [(value or b"").decode() for value in consumer.receive_batch(count, timeout=0).values]


def counted(consumer: Consumer) -> list[tuple[str, int]]:
    """The values of the next messages, and how often each was handed out before."""
    return [
        ((message.value or b"").decode(), message.redelivery_count)
        for message in consumer.receive_batch(99, timeout=0)
    ]


def unacked(store: Store) -> int:
    count: int = row_json(store.reports.subscription_stats("t", "a"))["unackedMessages"]
    return count


@pytest.mark.usefixtures("sent")
class TestByItsOwnConsumer:
    """The consumer that has the later messages queued gives the earlier one up."""

    def test_one_given_back_keeps_its_place(self, store: Store, attach: Attach, clock: ManualClock) -> None:
        """What is queued behind it goes back uncounted, in the same commit; other keys stay."""
        consumer = attach()
        (first,) = consumer.receive_batch(1, timeout=0)
        consumer.negative_acknowledge(first, delay=30)
        assert unacked(store) == 2
        assert counted(consumer) == [("other", 0), ("none", 0)]
        assert receive(consumer) == []
        clock.advance(30)
        assert counted(consumer) == [("0", 1), ("1", 0), ("2", 0)]

    def test_one_given_back_at_once_comes_before_the_later_ones(self, attach: Attach) -> None:
        """Without a delay too: what stayed in the queue is received first, then the key in its order."""
        consumer = attach()
        consumer.negative_acknowledge(consumer.receive(timeout=0), delay=0)
        assert receive(consumer) == ["other", "none"]
        assert counted(consumer) == [("0", 1), ("1", 0), ("2", 0)]

    def test_one_pending_holds_its_key_until_the_abort(self, store: Store, attach: Attach) -> None:
        """Then it comes again, before the later ones."""
        consumer, txn = attach(), store.begin_transaction()
        consumer.acknowledge(consumer.receive(timeout=0), txn=txn)
        assert receive(consumer) == ["other", "none"]
        assert receive(consumer) == []
        assert unacked(store) == 2
        store.admin.transactions.abort_transaction(txn)
        assert counted(consumer) == [("0", 1), ("1", 0), ("2", 0)]

    def test_one_pending_holds_its_key_until_the_commit(self, store: Store, attach: Attach) -> None:
        """Then the later ones come, for the first time."""
        consumer, txn = attach(), store.begin_transaction()
        consumer.acknowledge(consumer.receive(timeout=0), txn=txn)
        assert receive(consumer) == ["other", "none"]
        store.commit_transaction(txn)
        assert counted(consumer) == [("1", 0), ("2", 0)]

    def test_one_committed_before_the_next_receive_moves_nothing(self, store: Store, attach: Attach) -> None:
        """A consumer that processes one message after the other keeps what it has queued, in its place."""
        consumer = attach()
        for value in ("0", "1"):
            message, txn = consumer.receive(timeout=0), store.begin_transaction()
            consumer.acknowledge(message, txn=txn)
            store.commit_transaction(txn)
            assert message.value == value.encode()
        assert unacked(store) == 3
        assert counted(consumer) == [("other", 0), ("none", 0), ("2", 0)]

    def test_the_abort_may_come_from_the_deadline(
        self, store: Store, attach: Attach, clock: ManualClock
    ) -> None:
        """A transaction that is reaped gives its messages back in their order."""
        consumer = attach()
        consumer.acknowledge(consumer.receive(timeout=0), txn=store.begin_transaction(timeout=5))
        clock.advance(6)
        store.admin.transactions.reap_transactions()
        assert receive(consumer) == ["other", "none"]
        assert receive(consumer) == ["0", "1", "2"]

    def test_the_abort_may_come_by_force(self, store: Store, attach: Attach) -> None:
        """Forcing the acknowledgement of one message releases the others of the transaction, in their order."""
        consumer, txn = attach(), store.begin_transaction()
        zero, one = consumer.receive_batch(2, timeout=0)
        consumer.acknowledge([zero, one], txn=txn)
        assert receive(consumer) == ["other", "none"]
        consumer.acknowledge(zero, force=True)
        assert counted(consumer) == [("1", 1), ("2", 0)]

    def test_what_the_application_has_stays_with_it(self, store: Store, attach: Attach) -> None:
        """Only what it has not received goes back."""
        consumer = attach()
        zero, one = consumer.receive_batch(2, timeout=0)
        consumer.negative_acknowledge(zero, delay=0)
        consumer.acknowledge(one)
        assert receive(consumer) == ["other", "none"]
        assert counted(consumer) == [("0", 1), ("2", 0)]

    def test_earlier_ones_of_the_key_stay_in_the_queue(self, attach: Attach) -> None:
        """One given back holds what comes after it, not what comes before."""
        consumer = attach()
        assert receive(consumer, 1) == ["0"]
        consumer.negative_acknowledge(MessageId(1, 4), delay=0)
        assert counted(consumer) == [("1", 0), ("other", 0), ("none", 0)]
        assert counted(consumer) == [("2", 1)]

    def test_one_pending_in_the_queue_holds_what_is_behind_it(self, store: Store, attach: Attach) -> None:
        """Acknowledged in a transaction before it was received."""
        consumer, txn = attach(), store.begin_transaction()
        assert receive(consumer, 1) == ["0"]
        consumer.acknowledge(MessageId(1, 1), txn=txn)
        assert receive(consumer) == ["other", "none"]
        store.admin.transactions.abort_transaction(txn)
        assert counted(consumer) == [("1", 1), ("2", 0)]

    def test_another_consumer_may_be_handed_what_went_back(self, store: Store, attach: Attach) -> None:
        """It belongs to nobody as soon as the key is free."""
        one, txn = attach(), store.begin_transaction()
        one.acknowledge(one.receive(timeout=0), txn=txn)
        two = attach()
        assert receive(one) == ["other", "none"]
        assert receive(two) == []
        store.commit_transaction(txn)
        assert [*counted(two), *counted(two)] == [("1", 0), ("2", 0)]

    def test_a_dead_letter_lets_the_later_ones_pass_uncounted(self, store: Store, attach: Attach) -> None:
        """One that is worn out goes to the dead-letter topic; what went back behind it is not counted against it."""
        consumer = attach(max_redeliver_count=0, dead_letter_topic="grave")
        consumer.negative_acknowledge(consumer.receive(timeout=0), delay=0)
        assert receive(consumer) == ["other", "none"]
        assert counted(consumer) == [("1", 0), ("2", 0)]
        assert [message.value for message in store.reader("grave")] == [b"0"]

    def test_closing_counts_nothing_twice(self, store: Store, attach: Attach) -> None:
        """What went back before the close goes back once."""
        with attach() as consumer:
            consumer.negative_acknowledge(consumer.receive(timeout=0), delay=0)
        assert counted(attach()) == [("0", 1), ("1", 0), ("other", 0), ("none", 0), ("2", 0)]


@pytest.mark.usefixtures("sent")
class TestByOthers:
    """An operator or another consumer takes the earlier message away."""

    @pytest.mark.parametrize("delay", [0, 30])
    def test_one_given_back_by_an_operator_keeps_its_place(
        self, store: Store, attach: Attach, clock: ManualClock, delay: int
    ) -> None:
        """The consumer gives back what it has queued behind it before it hands out anything more."""
        consumer = attach()
        assert receive(consumer, 1) == ["0"]
        store.admin.acknowledgements.negative_acknowledge_messages("t", "a", [FIRST], delay=delay)
        assert counted(consumer) == [("other", 0), ("none", 0)]
        clock.advance(delay)
        assert counted(consumer) == [("0", 1), ("1", 0), ("2", 0)]

    @pytest.mark.parametrize("is_another_consumer", [False, True])
    @pytest.mark.parametrize("looks", ["while it is pending", "after the abort"])
    def test_one_made_pending_by_another_holds_its_key(
        self, store: Store, attach: Attach, is_another_consumer: bool, looks: str
    ) -> None:
        """Whether the consumer looks before or after the transaction is aborted."""
        consumer, txn = attach(), store.begin_transaction()
        assert receive(consumer, 1) == ["0"]
        other = attach()
        if is_another_consumer:
            other.acknowledge(FIRST, txn=txn)
        else:
            store.admin.acknowledgements.acknowledge_messages("t", "a", [FIRST], txn=txn)
        if looks == "after the abort":
            store.admin.transactions.abort_transaction(txn)
        assert receive(consumer) == ["other", "none"]
        if looks == "while it is pending":
            assert receive(consumer) == receive(other) == []
            store.admin.transactions.abort_transaction(txn)
        again = [*counted(consumer), *counted(consumer)]
        assert again == [("0", 1), ("1", 0), ("2", 0)]

    def test_one_pending_that_is_committed_before_anybody_looks_moves_nothing(
        self, store: Store, attach: Attach
    ) -> None:
        """What is queued behind it stays where it is: it overtakes nobody."""
        consumer, txn = attach(), store.begin_transaction()
        assert receive(consumer, 1) == ["0"]
        store.admin.acknowledgements.acknowledge_messages("t", "a", [FIRST], txn=txn)
        store.commit_transaction(txn)
        assert counted(consumer) == [("1", 0), ("other", 0), ("none", 0), ("2", 0)]

    def test_the_later_ones_wait_while_another_consumer_has_it(self, store: Store, attach: Attach) -> None:
        """A message in flight elsewhere holds its key, also for those that were queued here before."""
        consumer = attach()
        assert receive(consumer, 1) == ["0"]
        other = attach()
        store.admin.acknowledgements.negative_acknowledge_messages("t", "a", [FIRST], delay=0)
        (first,) = other.receive_batch(99, timeout=0)
        assert receive(consumer) == ["other", "none"]
        assert receive(consumer) == []
        other.acknowledge(first)
        assert [*counted(consumer), *counted(consumer)] == [("1", 0), ("2", 0)]

    def test_an_acknowledgement_for_good_moves_nothing(self, store: Store, attach: Attach) -> None:
        """What an operator acknowledges or skips holds no key."""
        consumer = attach()
        assert receive(consumer, 1) == ["0"]
        store.admin.acknowledgements.acknowledge_messages("t", "a", [MessageId(1, 1)])
        store.admin.subscriptions.skip_messages("t", "a", 1)
        assert counted(consumer) == [("other", 0), ("none", 0), ("2", 0)]

    def test_an_evicted_consumer_gives_out_nothing_more(self, store: Store, attach: Attach) -> None:
        """The next one is handed the key in its order."""
        consumer, other = attach(consumer_name="c"), attach()
        assert receive(consumer, 1) == ["0"]
        store.admin.subscriptions.evict_consumers("t", "a", "c")
        with pytest.raises(ConsumerEvicted):
            consumer.receive(timeout=0)
        assert receive(other) == ["0", "1", "other", "none", "2"]

    def test_a_seek_empties_the_queue(self, store: Store, attach: Attach) -> None:
        """And the key comes in its order from the new place."""
        consumer = attach()
        assert receive(consumer, 2) == ["0", "1"]
        store.admin.subscriptions.seek_subscription("t", "a", FIRST)
        assert receive(consumer) == ["0", "1", "other", "none", "2"]

    def test_a_consumer_that_could_not_give_back_looks_again(
        self, store: Store, attach: Attach, path: str, clock: ManualClock
    ) -> None:
        """A busy store costs a retry, never the order."""
        with Store.open(path, clock=clock, lock_timeout=0.05) as impatient:
            consumer = impatient.subscribe("t", "a", subscription_type=KEY_SHARED, initial_position=EARLIEST)
            assert receive(consumer, 1) == ["0"]
            store.admin.acknowledgements.negative_acknowledge_messages("t", "a", [FIRST], delay=30)
            with busy(store), pytest.raises(WriterBusy):
                consumer.receive(timeout=0)
            assert receive(consumer) == ["other", "none"]


class TestBatches:
    """Keys are looked at message by message."""

    def test_in_one_entry(self, store: Store, attach: Attach) -> None:
        """Of one entry some messages go back and some stay."""
        values, keys = [b"k0", b"l0", b"k1", b"n", b"k2"], ["k", "l", "k", None, "k"]
        store.create_producer("t").send_batch(values, keys=keys)
        consumer = attach()
        assert receive(consumer, 1) == ["k0"]
        consumer.negative_acknowledge(MessageId(1, 0, 0), delay=0)
        assert counted(consumer) == [("l0", 0), ("n", 0)]
        assert counted(consumer) == [("k0", 1), ("k1", 0), ("k2", 0)]

    def test_a_whole_entry_holds_all_its_keys(self, store: Store, attach: Attach) -> None:
        """Acknowledged by its position alone; what comes in later entries waits."""
        producer, txn = store.create_producer("t"), store.begin_transaction()
        producer.send_batch([b"k0", b"l0"], keys=["k", "l"])
        producer.send_batch([b"k1", b"l1", b"m1"], keys=["k", "l", "m"])
        consumer = attach()
        assert receive(consumer, 2) == ["k0", "l0"]
        consumer.acknowledge(FIRST, txn=txn)
        assert receive(consumer) == ["m1"]
        store.admin.transactions.abort_transaction(txn)
        assert receive(consumer) == ["k0", "l0", "k1", "l1"]

    def test_an_empty_key_is_a_key(self, store: Store, attach: Attach) -> None:
        """It is held like any other."""
        store.create_producer("t").send_batch([b"0", b"1"], keys=["", ""])
        consumer = attach()
        consumer.negative_acknowledge(consumer.receive(timeout=0), delay=0)
        assert counted(consumer) == [("0", 1), ("1", 0)]


@pytest.mark.usefixtures("sent")
@pytest.mark.parametrize("type_", [SubscriptionType.SHARED, SubscriptionType.EXCLUSIVE])
def test_other_types_keep_what_is_queued(attach: Attach, type_: SubscriptionType) -> None:
    """Where keys have no order, or delivery is by position, one given back moves no other."""
    consumer = attach(subscription_type=type_)
    consumer.negative_acknowledge(consumer.receive(timeout=0), delay=0)
    assert counted(consumer) == [("1", 0), ("other", 0), ("none", 0), ("2", 0)]
