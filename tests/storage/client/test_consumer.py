"""Consumer: `storage/client/consumer.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.errors import InvalidValue, WaitTimeout, WriterBusy
from storage.process.clock import ManualClock
from tests.row_json import row_json
from tests.storage.held_gate import held_gate
from tests.storage.walk_steps import (
    SHARED,
    TYPES,
    Attach,
    receive,
    send,
    values,
)


class TestNegativeAcknowledgement:
    """Given back, with a delay."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_it_comes_again_after_the_delay(
        self, store: Store, attach: Attach, clock: ManualClock, type_: SubscriptionType
    ) -> None:
        """Not before, and with its count raised."""
        send(store, "x")
        consumer = attach(type_)
        (message,) = receive(consumer)
        consumer.negative_acknowledge(message, delay=30)
        clock.advance(29)
        assert receive(consumer) == []
        clock.advance(1)
        assert [m.redelivery_count for m in receive(consumer)] == [1]

    def test_its_delay_runs_on_the_boot_clock(self, store: Store, attach: Attach, clock: ManualClock) -> None:
        """A wall clock that jumps a year makes nothing due."""
        send(store, "x")
        consumer = attach()
        consumer.negative_acknowledge(receive(consumer)[0], delay=30)
        clock.wall_now_ns += 365 * 86_400 * 10**9
        assert receive(consumer) == []
        clock.boot_now_ns += 30 * 10**9
        assert values(consumer) == [b"x"]

    def test_a_waiting_consumer_gets_it_when_it_is_due(self, store: Store, attach: Attach) -> None:
        """Nobody has to write for a delay to end."""
        send(store, "x")
        consumer = attach()
        consumer.negative_acknowledge(receive(consumer)[0], delay=3)
        with pytest.raises(WaitTimeout):
            consumer.receive(timeout=2)
        assert consumer.receive(timeout=2).value == b"x"

    def test_it_goes_to_whoever_comes_first(self, store: Store, attach: Attach) -> None:
        """A message given back belongs to nobody."""
        send(store, "x")
        one, two = attach(SHARED), attach(SHARED)
        one.negative_acknowledge(receive(one)[0], delay=0)
        assert values(two) == [b"x"]
        assert values(one) == []

    def test_only_what_one_holds_is_given_back(self, store: Store, attach: Attach) -> None:
        """Another consumer's message, an acknowledged and a pending one stay as they are."""
        send(store, *"0123")
        one, two = attach(SHARED, window=1), attach(SHARED)
        receive(one)
        theirs, acked, pending = [*receive(two), *receive(two)]
        two.acknowledge(acked)
        two.acknowledge(pending, txn=store.begin_transaction())
        for message in (theirs, acked, pending):
            one.negative_acknowledge(message, delay=0)
        assert values(one) == values(two) == []

    @pytest.mark.parametrize("delay", [-1, -0.001, float("nan"), float("-inf")])
    def test_a_negative_delay_is_refused(self, store: Store, attach: Attach, delay: float) -> None:
        """And the message stays in flight."""
        send(store, "x")
        consumer = attach()
        (message,) = receive(consumer)
        with pytest.raises(InvalidValue):
            consumer.negative_acknowledge(message, delay=delay)
        assert row_json(store.reports.subscription_stats("t", "a"))["unackedMessages"] == 1

    @pytest.mark.parametrize("delay", [1e9, 1e30, float("inf")])
    def test_a_delay_may_be_as_long_as_one_likes(self, store: Store, attach: Attach, delay: float) -> None:
        """For ever too; a seek brings the message back."""
        send(store, "x")
        consumer = attach()
        consumer.negative_acknowledge(receive(consumer)[0], delay=delay)
        assert receive(consumer) == []
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        assert values(consumer) == [b"x"]


class TestWaiting:
    """`receive` with and without patience."""

    def test_no_patience_is_an_empty_hand(self, store: Store, attach: Attach) -> None:
        """`receive_batch` returns nothing, `receive` says that nothing came."""
        consumer = attach()
        assert receive(consumer) == []
        with pytest.raises(WaitTimeout) as caught:
            consumer.receive(timeout=0)
        assert (caught.value.exit_code, caught.value.retryable) == (7, True)

    def test_patience_ends_in_time(self, store: Store, attach: Attach, clock: ManualClock) -> None:
        """A wait lasts as long as was asked for, by the boot clock."""
        consumer = attach()
        began = clock.boot_now_ns
        with pytest.raises(WaitTimeout):
            consumer.receive(timeout=7)
        assert 7 <= (clock.boot_now_ns - began) / 1e9 < 8

    @pytest.mark.parametrize("timeout", [-1, float("nan")])
    def test_no_time_at_all_is_refused(self, store: Store, attach: Attach, timeout: float) -> None:
        """Less than nothing cannot be waited for."""
        with pytest.raises(InvalidValue):
            attach().receive(timeout=timeout)

    def test_an_endless_wait_still_takes_what_is_there(self, store: Store, attach: Attach) -> None:
        """Infinity and None are for ever."""
        send(store, *"01")
        consumer = attach()
        assert consumer.receive(timeout=float("inf")).value == b"0"
        assert consumer.receive().value == b"1"


class TestPolling:
    """With a timeout of 0."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_it_passes_an_overdue_transaction(
        self, store: Store, attach: Attach, clock: ManualClock, type_: SubscriptionType
    ) -> None:
        """A poll ends the overdue transaction in the way, as a wait does."""
        producer = store.create_producer("t")
        producer.send(b"uncommitted", txn=store.begin_transaction(timeout=10))
        producer.send(b"behind")
        consumer = attach(type_)
        assert consumer.receive_batch(10, timeout=0) == []
        clock.advance(11)
        assert [message.value for message in consumer.receive_batch(10, timeout=0)] == [b"behind"]


class TestCommits:
    """Durable commits of a consumer."""

    def test_a_receive_makes_none_of_its_own(self, store: Store) -> None:
        """One for each window: the messages that the application has received are noted without a commit."""
        store.create_producer("t").send_batch([b"x"] * 40)
        with store.subscribe("t", "s", initial_position=EARLIEST, receiver_queue_size=10) as consumer:
            before = store.connection.environment.last_commit()
            for _ in range(40):
                consumer.receive(timeout=0)
            assert store.connection.environment.last_commit() - before == 4


class TestOwnCommits:
    """After an acknowledgement of its own, a consumer need not look again for messages that were recalled."""

    def test_messages_recalled_before_it(self, store: Store, attach: Attach) -> None:
        """The acknowledgement sees them, and the next receive drops them."""
        ids = send(store, *"0123")
        consumer = attach(SHARED)
        (first,) = receive(consumer, 1)
        store.admin.acknowledgements.acknowledge_messages("t", "a", [ids[1]])
        consumer.acknowledge(first)
        assert values(consumer) == [b"2", b"3"]

    def test_messages_recalled_after_it(self, store: Store, attach: Attach) -> None:
        """The next receive looks, as after every commit of a different process."""
        ids = send(store, *"0123")
        consumer = attach(SHARED)
        consumer.acknowledge(receive(consumer, 1))
        store.admin.acknowledgements.acknowledge_messages("t", "a", [ids[1]])
        assert values(consumer) == [b"2", b"3"]

    def test_an_acknowledgement_that_changes_nothing(self, store: Store, attach: Attach) -> None:
        """It makes no commit, so the next commit is not taken for its own."""
        ids = send(store, *"0123")
        consumer = attach(SHARED)
        (first,) = receive(consumer, 1)
        consumer.acknowledge(first)
        consumer.acknowledge(first)
        store.admin.acknowledgements.acknowledge_messages("t", "a", [ids[1]])
        assert values(consumer) == [b"2", b"3"]


class TestHeldGate:
    """A message is there, and a different process holds the writer gate."""

    @pytest.mark.parametrize("timeout", [0, 0.5, 3])
    def test_a_receive_ends_with_its_own_timeout(
        self, store: Store, attach: Attach, clock: ManualClock, timeout: float
    ) -> None:
        """Not with that of the lock; a poll has a tenth of a second for its turn."""
        send(store, "x")
        consumer = attach()
        began_ns = clock.boot_ns()
        with held_gate(store):
            assert not consumer.receive_batch(10, timeout)
        assert max(timeout, 0.1) <= (clock.boot_ns() - began_ns) / 1e9 < timeout + 0.2
        assert values(consumer) == [b"x"]

    def test_a_longer_receive_is_refused_after_the_lock_timeout(
        self, store: Store, attach: Attach, clock: ManualClock
    ) -> None:
        """As every write is."""
        send(store, "x")
        consumer = attach()
        began_ns = clock.boot_ns()
        with held_gate(store), pytest.raises(WriterBusy):
            consumer.receive(None)
        assert 5 <= (clock.boot_ns() - began_ns) / 1e9 < 5.5

    def test_short_receives_are_refused_once_they_have_waited_as_long(
        self, store: Store, attach: Attach
    ) -> None:
        """A loop of them would never hear of a stopped holder."""
        send(store, "x")
        consumer = attach()
        with held_gate(store):
            for _ in range(4):
                assert not consumer.receive_batch(1, 1)
            with pytest.raises(WriterBusy):
                consumer.receive_batch(1, 1)
        assert values(consumer) == [b"x"]

    def test_a_wait_for_a_topic_ends_with_its_own_timeout(self, store: Store, clock: ManualClock) -> None:
        """Nobody is connected, and only the gate is in the way."""
        began_ns = clock.boot_ns()
        with held_gate(store), pytest.raises(WriterBusy):
            store.create_producer("t", access_mode="WaitForExclusive", timeout=1)
        assert 1 <= (clock.boot_ns() - began_ns) / 1e9 < 1.2

    def test_a_wait_for_a_transaction_ends_with_its_own_timeout(
        self, store: Store, clock: ManualClock
    ) -> None:
        """The awaited one is overdue, and cannot be ended behind a held gate."""
        txn = store.begin_transaction(timeout=10)
        clock.advance(20)
        began_ns = clock.boot_ns()
        with held_gate(store), pytest.raises(WaitTimeout):
            store.reports.wait_for_transaction(txn, 1)
        assert 1 <= (clock.boot_ns() - began_ns) / 1e9 < 1.2
