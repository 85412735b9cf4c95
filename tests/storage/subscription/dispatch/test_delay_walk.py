"""Delayed delivery: a message with a delivery time is not delivered before, on Shared and Key_Shared."""

from __future__ import annotations

import pytest

from storage import EARLIEST, OnOpen, Store, SubscriptionType
from storage.disk.schema import DELAYED, DELAYED_DUE, DELIVERIES
from storage.process.clock import ManualClock
from storage.topic import log
from tests.storage.walk_steps import EXCLUSIVE, FAILOVER, KEY_SHARED, RC, RU, SHARED, Attach, receive, values

HEEDING = [SHARED, KEY_SHARED]

CLASSES = ("visible", "blocked", "delayed", "uncommitted", "pending")


def classes(store: Store) -> dict[str, int]:
    """The classes of the backlog of subscription `a` that have messages."""
    (row,) = [row for row in store.reports.list_subscriptions("t") if row.subscription == "a"]
    counts = {name: getattr(row.stats, name) for name in CLASSES}
    return {name: number for name, number in counts.items() if number}


def delayed_records(store: Store) -> int:
    with store.connection.view() as view:
        return view.count(DELAYED) + view.count(DELAYED_DUE)


@pytest.mark.parametrize("type_", HEEDING)
class TestDueTime:
    """Each message comes when it is due."""

    def test_not_before_and_then_first(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """A delayed message lets later ones pass; once due, it comes before messages not delivered yet."""
        producer, consumer = store.create_producer("t"), attach(type_)
        producer.send(b"late", deliver_after=60)
        producer.send(b"plain")
        assert values(consumer) == [b"plain"]
        clock.advance(59.9)
        assert values(consumer) == []
        producer.send(b"next")
        clock.advance(0.1)
        assert values(consumer) == [b"late", b"next"]

    def test_by_due_time_of_each_message_of_a_batch(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """Messages of one entry come at their own times."""
        consumer = attach(type_)
        store.create_producer("t").send_batch([b"20", b"0", b"10", b"30"], deliver_after=[20, None, 10, 30])
        came = []
        for _ in range(4):
            came.append(values(consumer))
            clock.advance(10)
        assert came == [[b"0"], [b"10"], [b"20"], [b"30"]]

    def test_a_message_counts_as_delivered_once_it_is(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """Waiting for its time adds nothing to the redelivery count; given back, the time is not waited for again."""
        consumer = attach(type_)
        store.create_producer("t").send(b"late", deliver_at=clock.wall_ms() + 5000)
        assert receive(consumer) == []
        clock.advance(5)
        (message,) = receive(consumer)
        assert (message.redelivery_count, message.deliver_at) == (0, clock.wall_ms())
        consumer.negative_acknowledge(message, delay=0)
        clock.wall_now_ns -= 10**9
        (again,) = receive(consumer)
        assert again.redelivery_count == 1

    def test_acknowledged_it_leaves_nothing_behind(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        consumer = attach(type_)
        store.create_producer("t").send_batch([b"a", b"b"], deliver_after=1)
        assert values(consumer) == []
        clock.advance(1)
        consumer.acknowledge(receive(consumer))
        with store.connection.view() as view:
            assert [view.count(database) for database in (DELAYED, DELAYED_DUE, DELIVERIES)] == [0, 0, 0]
        assert classes(store) == {}


@pytest.mark.parametrize("type_", [EXCLUSIVE, FAILOVER])
def test_types_in_the_order_of_the_log_ignore_it(
    store: Store, attach: Attach, type_: SubscriptionType
) -> None:
    producer = store.create_producer("t")
    producer.send(b"late", deliver_after=60)
    producer.send(b"plain")
    assert values(attach(type_)) == [b"late", b"plain"]
    assert [message.value for message in store.reader("t")] == [b"late", b"plain"]


class TestTransactions:
    """A message waits for both, its transaction and its time."""

    @pytest.mark.parametrize("skips", [False, True])
    @pytest.mark.parametrize("type_", HEEDING)
    def test_not_before_its_transaction_commits(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType, skips: bool
    ) -> None:
        """The time is fixed at the send: a commit after it delivers at once, a commit before it does not."""
        consumer = attach(type_, **({"on_open": OnOpen.SKIP} if skips else {}))
        txn, producer = store.begin_transaction(), store.create_producer("t")
        producer.send(b"early", txn=txn, deliver_after=5)
        producer.send(b"late", txn=txn, deliver_after=20)
        clock.advance(10)
        assert values(consumer) == []
        assert classes(store) == {"uncommitted": 2}
        store.commit_transaction(txn)
        assert values(consumer) == [b"early"]
        assert classes(store) == {"visible": 1, "delayed": 1}
        clock.advance(10)
        assert values(consumer) == [b"late"]

    @pytest.mark.parametrize("skips", [False, True])
    @pytest.mark.parametrize("type_", HEEDING)
    def test_aborted_it_never_comes(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType, skips: bool
    ) -> None:
        consumer = attach(type_, **({"on_open": OnOpen.SKIP} if skips else {}))
        txn, producer = store.begin_transaction(), store.create_producer("t")
        producer.send(b"never", txn=txn, deliver_after=5)
        assert values(consumer) == []
        store.admin.transactions.abort_transaction(txn)
        clock.advance(10)
        assert values(consumer) == []
        assert classes(store) == {}

    def test_buffered_sends_keep_the_time_of_the_send(
        self, store: Store, clock: ManualClock, attach: Attach
    ) -> None:
        """A message that its transaction buffers for a while is due as if it had been stored at once."""
        consumer, producer = attach(SHARED), store.create_producer("t")
        with store.transaction() as txn:
            producer.send(b"plain", txn=txn)
            producer.send(b"late", txn=txn, deliver_after=0.5)
            clock.advance(0.4)
        assert values(consumer) == [b"plain"]
        clock.advance(0.1)
        assert values(consumer) == [b"late"]

    @pytest.mark.parametrize("type_", HEEDING)
    def test_an_uncommitted_reader_gets_it_when_due(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """READ_UNCOMMITTED waits for no transaction, and for the delivery time all the same, also of aborted ones."""
        consumer = attach(type_, subscription_isolation_level=RU)
        txn = store.begin_transaction()
        store.create_producer("t").send(b"late", txn=txn, deliver_after=5)
        assert values(consumer) == []
        store.admin.transactions.abort_transaction(txn)
        clock.advance(5)
        assert values(consumer) == [b"late"]

    @pytest.mark.parametrize("type_", HEEDING)
    def test_an_aborted_acknowledgement_gives_the_delay_back(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """An operator's acknowledgement of a delayed message is pending, and after an abort the message waits on."""
        consumer = attach(type_)
        message_id = store.create_producer("t").send(b"late", deliver_after=5)
        assert values(consumer) == []
        txn = store.begin_transaction()
        store.admin.acknowledgements.acknowledge_messages("t", "a", [message_id], txn=txn)
        assert classes(store) == {"pending": 1}
        assert delayed_records(store) == 0
        store.admin.transactions.abort_transaction(txn)
        assert values(consumer) == []
        assert classes(store) == {"delayed": 1}
        clock.advance(5)
        assert [message.redelivery_count for message in receive(consumer)] == [0]


class TestKeys:
    """A delayed message holds its key once it is delivered."""

    def test_a_delayed_message_does_not_hold_its_key(
        self, store: Store, clock: ManualClock, attach: Attach
    ) -> None:
        """Later messages of the key come before; once delivered, the message holds its key like any other."""
        consumer, producer = attach(KEY_SHARED, window=1), store.create_producer("t")
        producer.send(b"late", key="k", deliver_after=5)
        producer.send(b"first", key="k")
        (first,) = receive(consumer, 1)
        assert first.value == b"first"
        consumer.acknowledge(first)
        clock.advance(5)
        (late,) = receive(consumer, 1)
        second = attach(KEY_SHARED)
        producer.send(b"behind", key="k")
        assert values(second) == []
        consumer.acknowledge(late)
        assert values(second) == [b"behind"]

    def test_a_due_message_waits_for_earlier_ones_of_its_key(
        self, store: Store, clock: ManualClock, attach: Attach
    ) -> None:
        one, two, producer = attach(KEY_SHARED), attach(KEY_SHARED), store.create_producer("t")
        producer.send(b"before", key="k")
        producer.send(b"late", key="k", deliver_after=5)
        (before,) = receive(one)
        clock.advance(5)
        assert values(two) == []
        assert classes(store) == {"visible": 2}
        one.acknowledge(before)
        assert values(two) == [b"late"]

    def test_many_due_messages_behind_a_key_do_not_hide_the_next(
        self, store: Store, clock: ManualClock, attach: Attach
    ) -> None:
        """More due messages than a window, all waiting for a key, let a message of another key through."""
        one, producer = attach(KEY_SHARED), store.create_producer("t")
        producer.send(b"before", key="k")
        assert values(one) == [b"before"]
        for number in range(5):
            producer.send(b"k%d" % number, key="k", deliver_after=5)
        producer.send(b"free", key="j", deliver_after=6)
        two = attach(KEY_SHARED, window=2)
        assert values(two) == []
        clock.advance(6)
        assert values(two) == [b"free"]

    def test_a_delayed_message_of_an_open_transaction_holds_no_key(
        self, store: Store, clock: ManualClock, attach: Attach
    ) -> None:
        """With on-open skip, only the plain message of the open transaction holds its key."""
        consumer = attach(KEY_SHARED, on_open=OnOpen.SKIP)
        txn, producer = store.begin_transaction(), store.create_producer("t")
        producer.send_batch([b"a", b"b"], keys=["a", "b"], deliver_after=[5, None], txn=txn)
        producer.send(b"1", key="a")
        producer.send(b"2", key="b")
        producer.send(b"3", key="b", deliver_after=5)
        assert values(consumer) == [b"1"]
        assert classes(store) == {"visible": 1, "blocked": 1, "delayed": 1, "uncommitted": 2}
        clock.advance(5)
        assert values(consumer) == []
        assert classes(store) == {"visible": 1, "blocked": 2, "uncommitted": 2}
        store.commit_transaction(txn)
        assert values(consumer) == [b"a", b"b", b"2", b"3"]


@pytest.mark.parametrize("type_", HEEDING)
class TestOperators:
    """Whatever acknowledges, moves or changes a subscription takes the delayed messages along."""

    def test_acknowledge(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """An acknowledged message of a batch leaves the others to their time."""
        consumer = attach(type_)
        receipt = store.create_producer("t").send_batch([b"a", b"b", b"c"], deliver_after=[5, 6, 5])
        assert values(consumer) == []
        ids = list(receipt)
        store.admin.acknowledgements.acknowledge_messages("t", "a", ids[:2])
        assert classes(store) == {"delayed": 1}
        clock.advance(9)
        assert values(consumer) == [b"c"]

    def test_give_back(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """A delayed message is not in flight: a negative acknowledgement by an operator leaves it as it is."""
        consumer = attach(type_)
        message_id = store.create_producer("t").send(b"late", deliver_after=5)
        assert values(consumer) == []
        admin = store.admin.acknowledgements
        assert admin.negative_acknowledge_messages("t", "a", [message_id], delay=0).given_back == 0
        assert values(consumer) == []
        clock.advance(5)
        assert values(consumer) == [b"late"]

    def test_skip_counts_delayed_messages_in_the_order_of_the_log(
        self, store: Store, attach: Attach, type_: SubscriptionType
    ) -> None:
        attach(type_).close()
        producer, consumer = store.create_producer("t"), attach(type_)
        producer.send(b"late", deliver_after=5)
        producer.send(b"plain")
        producer.send(b"last")
        assert values(consumer, 1) == [b"plain"]
        assert store.admin.subscriptions.skip_messages("t", "a", 1).effects.change.skipped == 1
        assert classes(store) == {"visible": 2}
        assert delayed_records(store) == 0

    def test_clear_backlog_removes_them(self, store: Store, attach: Attach, type_: SubscriptionType) -> None:
        consumer = attach(type_)
        store.create_producer("t").send_batch([b"a", b"b"], deliver_after=[5, 6])
        assert values(consumer) == []
        assert store.admin.subscriptions.clear_backlog("t", "a").effects.change.skipped == 2
        assert (classes(store), delayed_records(store)) == ({}, 0)

    def test_seek_back(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """Times in the past are past: after a seek such messages come at once, others at their time."""
        consumer = attach(type_)
        store.create_producer("t").send_batch([b"a", b"b"], deliver_after=[5, 10])
        clock.advance(5)
        consumer.acknowledge(receive(consumer))
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        assert values(consumer) == [b"a"]
        clock.advance(5)
        assert values(consumer) == [b"b"]

    def test_delete(self, store: Store, attach: Attach, type_: SubscriptionType) -> None:
        with attach(type_) as consumer:
            store.create_producer("t").send(b"late", deliver_after=5)
            assert values(consumer) == []
        store.admin.subscriptions.delete_subscription("t", "a")
        assert delayed_records(store) == 0

    @pytest.mark.parametrize("name", ["t"])
    def test_truncate_and_delete_topic(
        self, store: Store, attach: Attach, type_: SubscriptionType, name: str
    ) -> None:
        with attach(type_) as consumer:
            store.create_producer("t").send(b"late", deliver_after=5)
            assert values(consumer) == []
        store.admin.topics.truncate_topic(name)
        assert delayed_records(store) == 0
        with attach(type_) as consumer:
            store.create_producer("t").send(b"late", deliver_after=5)
            assert values(consumer) == []
        assert delayed_records(store) == 2
        store.admin.topics.delete_topic(name, force=True)
        assert delayed_records(store) == 0

    def test_change_to_exclusive(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """The records are dropped, and the message comes at its place; changed back, what never came waits again."""
        with attach(type_) as consumer:
            producer = store.create_producer("t")
            producer.send(b"late", deliver_after=5)
            producer.send(b"plain")
            (plain,) = receive(consumer)
            consumer.acknowledge(plain)
        change = store.admin.subscriptions.update_subscription
        change("t", "a", subscription_type=EXCLUSIVE)
        assert delayed_records(store) == 0
        change("t", "a", subscription_type=type_)
        with attach(type_) as consumer:
            assert values(consumer) == []
        assert classes(store) == {"delayed": 1}
        change("t", "a", subscription_type=FAILOVER)
        with attach(FAILOVER) as consumer:
            assert values(consumer) == [b"late"]

    def test_change_of_level(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """A delayed message of an aborted transaction leaves with the change to READ_COMMITTED."""
        with attach(type_, subscription_isolation_level=RU) as consumer:
            txn, producer = store.begin_transaction(), store.create_producer("t")
            producer.send(b"aborted", txn=txn, deliver_after=5)
            producer.send(b"late", deliver_after=5)
            assert values(consumer) == []
            assert classes(store) == {"delayed": 2}
            store.admin.transactions.abort_transaction(txn)
        with attach(type_, subscription_isolation_level=RC) as consumer:
            assert values(consumer) == []
            assert classes(store) == {"delayed": 1}
            clock.advance(5)
            assert values(consumer) == [b"late"]

    def test_a_delayed_message_holds_the_topic(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """markDeletePosition stays before it, and nothing is trimmed, until it is delivered and acknowledged."""
        store.admin.topics.set_retention("t", time_ms=0)
        consumer, producer = attach(type_), store.create_producer("t")
        producer.send(b"late", deliver_after=5)
        producer.send(b"plain")
        consumer.acknowledge(receive(consumer))
        store.admin.topics.trim_topic("t")
        assert [message.value for message in store.reader("t", start=EARLIEST)] == [b"late", b"plain"]
        clock.advance(5)
        consumer.acknowledge(receive(consumer))
        store.admin.topics.trim_topic("t")
        assert list(store.reader("t", start=EARLIEST)) == []

    def test_redriven_it_comes_at_once(
        self, store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
    ) -> None:
        """Its time is past."""
        consumer = attach(type_, max_redeliver_count=0)
        store.create_producer("t").send(b"late", deliver_after=5)
        clock.advance(5)
        consumer.negative_acknowledge(receive(consumer)[0], delay=0)
        assert values(consumer) == []
        store.admin.subscriptions.redrive_dead_letters("t", "a")
        assert values(consumer) == [b"late"]


@pytest.mark.parametrize("type_", HEEDING)
def test_dead_letters_carry_no_delay(
    store: Store, clock: ManualClock, attach: Attach, type_: SubscriptionType
) -> None:
    consumer = attach(type_, max_redeliver_count=0)
    store.create_producer("t").send(b"late", deliver_after=5)
    clock.advance(5)
    consumer.negative_acknowledge(receive(consumer)[0], delay=0)
    assert values(consumer) == []
    (letter,) = store.reader("t-a-DLQ")
    assert (letter.value, letter.deliver_at) == (b"late", None)


def test_a_clock_set_back_delays_and_one_set_forward_does_not(
    store: Store, clock: ManualClock, attach: Attach
) -> None:
    """Delivery times are wall times: whatever the wall clock says counts."""
    consumer, producer = attach(SHARED), store.create_producer("t")
    producer.send(b"late", deliver_after=5)
    assert values(consumer) == []
    clock.wall_now_ns -= 3600 * 10**9
    clock.advance(10)
    assert values(consumer) == []
    clock.wall_now_ns += 3600 * 10**9
    assert values(consumer) == [b"late"]


def test_waiting_ends_at_the_due_time(store: Store, clock: ManualClock, attach: Attach) -> None:
    """A waiting consumer looks again when the next message is due, not at its next round."""
    consumer = attach(SHARED)
    store.create_producer("t").send(b"late", deliver_after=0.2)
    start_ns = clock.boot_ns()
    assert consumer.receive(timeout=60).value == b"late"
    assert clock.boot_ns() - start_ns < 210_000_000


def test_messages_far_in_the_future_are_passed_once(
    store: Store, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk reads no delayed message a second time, however many wait."""
    consumer, producer = attach(SHARED), store.create_producer("t")
    for number in range(200):
        producer.send(b"%d" % number, deliver_after=3600)
    assert values(consumer) == []
    read = []
    stored = log.stored
    monkeypatch.setattr(log, "stored", lambda *args: read.append(args) or stored(*args))
    producer.send(b"plain")
    assert values(consumer) == [b"plain"]
    assert read == []
