"""Handing out: order, flight, redelivery, keys (semantics section 5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, Message, MessageId, Store, SubscriptionType
from storage.errors import InvalidValue, WaitTimeout
from storage.process.clock import ManualClock
from storage.subscription.dispatch import walk
from storage.topic import log
from tests.row_json import row_json

RC, RU = IsolationLevel
EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType
TYPES = list(SubscriptionType)
Attach = Callable[..., Consumer]


@pytest.fixture
def attach(store: Store) -> Attach:
    """Attaches to subscription `a` of topic `t`, from the beginning."""

    def made(type_: SubscriptionType | None = None, window: int = 1000, **more: object) -> Consumer:
        return store.subscribe(
            "t",
            "a",
            subscription_type=type_,
            initial_position=EARLIEST,
            receiver_queue_size=window,
            **more,  # type: ignore[arg-type]
        )

    return made


def receive(consumer: Consumer, count: int = 99) -> list[Message]:
    return list(consumer.receive_batch(count, timeout=0))


def values(consumer: Consumer, count: int = 99) -> list[bytes | None]:
    return [message.value for message in receive(consumer, count)]


def send(store: Store, *sent: str, key: str | None = None) -> list[MessageId]:
    producer = store.create_producer("t")
    return [producer.send(value.encode(), key=key) for value in sent]


class TestOrder:
    """First deliveries are in position order (invariant 4)."""

    @pytest.mark.parametrize("type_", TYPES)
    def test_by_position_never_by_commit(self, store: Store, attach: Attach, type_: SubscriptionType) -> None:
        """The transaction that commits last may come first, because its message does."""
        producer = store.create_producer("t")
        one, two = store.begin_transaction(), store.begin_transaction()
        producer.send(b"one", txn=one)
        producer.send(b"two", txn=two)
        consumer = attach(type_)
        store.commit_transaction(two)
        assert values(consumer) == []
        store.commit_transaction(one)
        assert values(consumer) == [b"one", b"two"]

    @pytest.mark.parametrize("window", [1, 2, 3, 1000])
    def test_across_entries_ledgers_and_windows(self, store: Store, window: int) -> None:
        """However small the windows, every message comes once, in its place."""
        store.create_topic("r", ledger_entries_max=2)
        producer = store.create_producer("r")
        for size in (3, 1, 4, 1, 5):
            producer.send_batch([b"%d" % number for number in range(size)])
        consumer = store.subscribe("r", "a", initial_position=EARLIEST, receiver_queue_size=window)
        received = []
        while messages := consumer.receive_batch(2, timeout=0):
            received += [(str(message.message_id), message.value) for message in messages]
        assert received == [(str(message.message_id), message.value) for message in store.reader("r")]

    def test_long_stretches_without_a_message_are_passed(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """More aborted entries than one dispatch looks at do not hide the message behind them, without waiting."""
        monkeypatch.setattr(walk, "DISPATCH_SCAN_ENTRIES_MAX", 3)
        monkeypatch.setattr(log, "PAGE_ENTRIES", 2)
        txn = store.begin_transaction()
        producer = store.create_producer("t")
        for _ in range(9):
            producer.send(b"aborted", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        producer.send(b"behind")
        assert values(attach()) == [b"behind"]

    def test_many_in_flight_do_not_starve_others(
        self, store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A consumer that holds much does not keep what follows from the next one."""
        monkeypatch.setattr(walk, "DISPATCH_SCAN_ENTRIES_MAX", 3)
        monkeypatch.setattr(log, "PAGE_ENTRIES", 2)
        send(store, *map(str, range(12)))
        slow, other = attach(SHARED, window=10), attach(SHARED, window=10)
        held = receive(slow, 10)
        slow.negative_acknowledge(held[-1], delay=60)
        assert values(other) == [b"10", b"11"]


class TestFlight:
    """A message handed to a consumer is in flight until acknowledged."""

    def test_it_goes_to_one_consumer_only(self, store: Store, attach: Attach) -> None:
        """Two consumers of a Shared subscription divide the messages between them."""
        send(store, *"012345")
        one, two = attach(SHARED, window=2), attach(SHARED, window=2)
        received = [values(consumer, 2) for consumer in (one, two, one)]
        assert received == [[b"0", b"1"], [b"2", b"3"], [b"4", b"5"]]
        assert values(two) == []

    @pytest.mark.parametrize("type_", TYPES)
    def test_closing_gives_it_back_in_order(
        self, store: Store, attach: Attach, type_: SubscriptionType
    ) -> None:
        """The next consumer is handed the same messages again, and is told how often they were before."""
        send(store, *"0123")
        with attach(type_) as consumer:
            received = receive(consumer, 2)
            consumer.acknowledge(received[0])
        again = receive(attach(type_))
        assert [(m.value, m.redelivery_count) for m in again] == [(b"1", 1), (b"2", 0), (b"3", 0)]

    def test_what_the_application_never_saw_counts_as_not_handed_out(
        self, store: Store, attach: Attach
    ) -> None:
        """Prefetching costs a message none of its deliveries, however often consumers come and go."""
        send(store, *"01")
        for _ in range(3):
            with attach() as consumer:
                assert values(consumer, 1) == [b"0"]
        assert [m.redelivery_count for m in receive(attach())] == [3, 0]

    @pytest.mark.parametrize("type_", TYPES)
    def test_a_dead_consumers_messages_are_free_at_once(
        self, store: Store, attach: Attach, path: str, clock: ManualClock, type_: SubscriptionType
    ) -> None:
        """What a process held when it died goes to the next, in order on Exclusive and Failover."""
        send(store, *"012")
        with Store.open(path, clock=clock) as other:
            dead = other.subscribe("t", "a", subscription_type=type_, initial_position=EARLIEST)
            assert len(dead.receive_batch(2, timeout=0)) == 2
        again = receive(attach())
        assert [(m.value, m.redelivery_count) for m in again] == [(b"0", 1), (b"1", 1), (b"2", 1)]

    def test_on_failover_the_first_attached_is_handed_everything(self, store: Store, attach: Attach) -> None:
        """The second one waits, and takes over with what was not acknowledged."""
        send(store, *"01")
        first, second = attach(FAILOVER), attach(FAILOVER)
        assert values(second) == []
        (zero, _) = receive(first)
        first.acknowledge(zero)
        assert values(second) == []
        first.close()
        assert values(second) == [b"1"]

    def test_a_level_without_the_filter_tells_the_state_at_delivery(
        self, store: Store, attach: Attach
    ) -> None:
        """At READ_UNCOMMITTED each message says what its transaction was when it was handed out."""
        txn = store.begin_transaction()
        store.create_producer("t").send(b"x", txn=txn)
        with attach(subscription_isolation_level=RU) as consumer:
            (message,) = receive(consumer)
            assert (message.txn_id, message.txn_state.value) == (txn, "OPEN")  # type: ignore[union-attr]
        store.admin.transactions.abort_transaction(txn)
        (message,) = receive(attach())
        assert (message.txn_id, message.txn_state.value) == (txn, "ABORTED")  # type: ignore[union-attr]


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
        theirs, acked, pending = receive(two)
        two.acknowledge(acked)
        two.acknowledge(pending, txn=store.begin_transaction())
        for message in (theirs, acked, pending):
            one.negative_acknowledge(message, delay=0)
        assert values(one) == values(two) == []

    def test_what_is_given_back_from_the_queue_is_not_given_out(self, store: Store, attach: Attach) -> None:
        """It is in flight here no longer."""
        send(store, *"012")
        consumer = attach()
        receive(consumer, 1)
        consumer.negative_acknowledge(MessageId(1, 1), delay=60)
        assert values(consumer) == [b"2"]

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


class TestKeyShared:
    """A key's messages are handed out one consumer at a time, in order (invariant 21)."""

    def test_a_key_in_flight_elsewhere_waits(self, store: Store, attach: Attach) -> None:
        """Other keys, and messages without one, go on; the key follows when it is acknowledged."""
        producer = store.create_producer("t")
        for value, key in ((b"k0", "k"), (b"k1", "k"), (b"l0", "l"), (b"n0", None), (b"k2", "k")):
            producer.send(value, key=key)
        one, two = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
        (first,) = receive(one, 1)
        assert first.value == b"k0"
        assert values(two) == [b"l0", b"n0"]
        one.acknowledge(first)
        assert values(two) == [b"k1", b"k2"]

    def test_at_the_same_consumer_it_goes_on(self, store: Store, attach: Attach) -> None:
        """Earlier ones in flight right here hold nothing."""
        send(store, *"012", key="k")
        consumer = attach(KEY_SHARED, window=1)
        assert [values(consumer, 1) for _ in range(3)] == [[b"0"], [b"1"], [b"2"]]

    @pytest.mark.parametrize("how", ["given back", "pending"])
    def test_one_given_back_or_pending_holds_its_key(
        self, store: Store, attach: Attach, clock: ManualClock, how: str
    ) -> None:
        """At its own consumer too; then the key goes on in order."""
        send(store, *"01", key="k")
        send(store, "other", key="l")
        consumer = attach(KEY_SHARED, window=1)
        (message,) = receive(consumer, 1)
        txn = store.begin_transaction()
        if how == "pending":
            consumer.acknowledge(message, txn=txn)
        else:
            consumer.negative_acknowledge(message, delay=30)
        assert values(consumer) == [b"other"]
        assert values(consumer) == []
        store.admin.transactions.abort_transaction(txn)
        clock.advance(30)
        assert [value for _ in range(2) for value in values(consumer)] == [b"0", b"1"]

    def test_an_empty_key_is_a_key(self, store: Store, attach: Attach) -> None:
        """It holds like any other; no key holds nothing."""
        send(store, *"01", key="")
        send(store, *"23")
        one, two = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
        receive(one, 1)
        assert values(two) == [b"2", b"3"]

    def test_within_a_batch_by_message(self, store: Store, attach: Attach) -> None:
        """Keys are looked at message by message, not entry by entry."""
        store.create_producer("t").send_batch([b"k0", b"l0", b"k1", b"n"], keys=["k", "l", "k", None])
        one, two = attach(KEY_SHARED, window=1), attach(KEY_SHARED)
        assert values(one, 1) == [b"k0"]
        assert values(two) == [b"l0", b"n"]

    def test_a_dead_letter_in_waiting_holds_its_key(self, store: Store, attach: Attach) -> None:
        """A worn-out message whose transaction is undecided keeps the later ones of its key back."""
        producer, txn = store.create_producer("t"), store.begin_transaction()
        producer.send(b"poison", key="k", txn=txn)
        producer.send(b"later", key="k")
        consumer = attach(KEY_SHARED, subscription_isolation_level=RU, max_redeliver_count=0, window=1)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        assert values(consumer) == []
        store.commit_transaction(txn)
        assert values(consumer) == [b"later"]


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

    @pytest.mark.parametrize("count", [0, -1])
    def test_a_queue_holds_at_least_one(self, store: Store, attach: Attach, count: int) -> None:
        """A window of nothing is refused."""
        with pytest.raises(InvalidValue):
            attach(window=count)
