"""The records of deliveries: `storage/subscription/deliveries.py`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from storage import EARLIEST, Consumer, MessageId, Store, SubscriptionType
from storage.disk.codec import key3, pack
from storage.disk.schema import DELIVERIES
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore
from storage.limits import SPAN_FATES_MAX
from storage.process.clock import ManualClock
from storage.subscription import catalogue as subscriptions, span
from storage.subscription.deliveries import FreePlaces
from storage.subscription.delivery import NOBODY, PENDING, Delivery, DeliveryPart, every, records
from storage.subscription.message_set import indexes
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.span import SPAN_MESSAGES_MAX
from storage.topic import catalogue as topics
from storage.topic.open_topic import OpenTopic
from storage.values.position import Position
from tests.storage.damage import broken_by
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages
from tests.storage.subscription.crowd import join
from tests.storage.walk_steps import Attach, drain, receive, send, values

NUMBER = 20_000

FEW, MANY = 10, 1000

Opened = OpenSubscription[WriteBatch]


def opened(batch: WriteBatch) -> Opened:
    return OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "a"))


def count_records(store: Store) -> int:
    with store.connection.view() as view:
        return view.count(DELIVERIES)


def receive_all(consumer: Consumer, number: int = NUMBER) -> None:
    while number > 0:
        number -= len(consumer.receive_batch(1000, timeout=0))


class TestRecords:
    """Messages sent one by one share a record, 1,024 neighbouring entries at a time."""

    def test_messages_in_flight(self, store: Store, attach: Attach) -> None:
        """20,000 of them are 20 records, whoever has them."""
        write_messages(store, "t", NUMBER)
        one, two = attach(SubscriptionType.SHARED, window=100), attach(SubscriptionType.SHARED, window=100)
        for _ in range(NUMBER // 200):
            one.receive_batch(100, timeout=0)
            two.receive_batch(100, timeout=0)
        assert count_records(store) == 20

    def test_nothing_is_left_when_all_are_acknowledged(self, store: Store, attach: Attach) -> None:
        """Last first, one by one."""
        send(store, *"0123456789")
        consumer = attach(SubscriptionType.SHARED)
        for message in receive(consumer)[::-1]:
            assert count_records(store) == 1
            consumer.acknowledge(message)
        assert count_records(store) == 0

    def test_batches_between_single_messages(self, store: Store, attach: Attach) -> None:
        """An entry of several messages is in the span too, and the order is that of the log."""
        producer = store.create_producer("t")
        producer.send(b"0")
        producer.send_batch([b"1", b"2"])
        producer.send(b"3")
        with attach(SubscriptionType.SHARED) as consumer:
            assert values(consumer) == [b"0", b"1", b"2", b"3"]
            assert count_records(store) == 1
        assert [(message.value, message.redelivery_count) for message in receive(attach())] == [
            (b"0", 1), (b"1", 1), (b"2", 1), (b"3", 1),
        ]  # fmt: skip

    def test_a_record_of_an_earlier_release_stays_beside_the_span(self, store: Store, attach: Attach) -> None:
        """One entry's record is used until nothing of it is left; the neighbours are in the span."""
        send(store, *"0123")
        consumer = attach(SubscriptionType.SHARED)
        messages = receive(consumer)

        def write_as_before(batch: WriteBatch) -> None:
            subscription = opened(batch)
            at = Position(1, 1)
            delivery = subscription.deliveries.find(at)
            assert delivery is not None
            (part,) = delivery.parts
            subscription.deliveries.settle(at, 1, part.holder)
            record = pack([1, [[b"", *part.fate()]]])
            batch.put(DELIVERIES, key3(subscription.subscription_id, *at), record)

        store.connection.write(write_as_before)
        assert store.maintenance.verify_store(full=True) == []
        assert count_records(store) == 2
        txn = store.begin_transaction()
        consumer.acknowledge(messages[1:3], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        again = attach(SubscriptionType.SHARED)
        assert drain(again) == [b"1", b"2"]
        consumer.close()
        assert values(again) == [b"0", b"3"]
        again.acknowledge([message.message_id for message in messages])
        assert count_records(store) == 0

    def test_an_entry_in_a_span_with_a_record_of_its_own(self, store: Store, attach: Attach) -> None:
        """Verify finds it: the message would be delivered twice."""
        send(store, *"01")
        consumer = attach(SubscriptionType.SHARED)
        receive(consumer)
        found = broken_by(
            store,
            lambda batch: batch.put(
                DELIVERIES, key3(opened(batch).subscription_id, 1, 0), pack([1, [[b"", 1, 1, 0, False]]])
            ),
        )
        assert 23 in found
        store.connection.write(
            lambda batch: batch.delete(DELIVERIES, key3(opened(batch).subscription_id, 1, 0))
        )

    def test_a_span_over_a_batch(self, store: Store, attach: Attach) -> None:
        """Verify finds a bit of an entry of several messages."""
        store.create_producer("t").send_batch([b"0", b"1"])
        attach(SubscriptionType.SHARED)

        def put(batch: WriteBatch) -> None:
            opened(batch).deliveries.put(Delivery(Position(1, 0), 1, [DeliveryPart(1, NOBODY, 0)]))

        assert 23 in broken_by(store, put)
        store.connection.write(lambda batch: opened(batch).deliveries.settle(Position(1, 0), 1))

    def test_many_fates_in_one_span(self, store: Store, attach: Attach, clock: ManualClock) -> None:
        """Messages beyond the bound have records of their own, and come when they are due."""
        write_messages(store, "t", 3 * SPAN_FATES_MAX)
        attach(SubscriptionType.SHARED).close()

        def hold(batch: WriteBatch) -> None:
            subscription = opened(batch)
            for entry in range(3 * SPAN_FATES_MAX):
                part = DeliveryPart(1, NOBODY, 1, due_ns=1 + entry)
                subscription.deliveries.put(Delivery(Position(1, entry), 1, [part]))
            subscription.cursor.read = Position(1, 3 * SPAN_FATES_MAX - 1)

        store.connection.write(hold)
        assert count_records(store) == 1 + 2 * SPAN_FATES_MAX
        assert store.maintenance.verify_store(full=True) == []
        with attach(SubscriptionType.SHARED) as consumer:
            clock.advance(1)
            assert values(consumer, 999) == [b"%d" % at for at in range(3 * SPAN_FATES_MAX)]

    def test_messages_given_back_one_by_one_share_times(
        self, store: Store, attach: Attach, clock: ManualClock
    ) -> None:
        """However many, each at a time of its own: they come after their delay, a sixteenth of it late at most."""
        write_messages(store, "t", 600)
        consumer = attach(SubscriptionType.SHARED)
        for message in consumer.receive_batch(600, timeout=0):
            clock.advance(0.01)
            consumer.negative_acknowledge(message, delay=16)
        assert count_records(store) == 1
        clock.advance(16 - 6)
        early = len(consumer.receive_batch(600, timeout=0))
        assert early <= 1
        clock.advance(6 + 1)
        assert len(consumer.receive_batch(600, timeout=0)) == 600 - early


class TestWorkUnderTheGate:
    """Operations of LMDB under the writer gate, with 20,000 messages in flight, each an entry of its own."""

    def test_closing_a_consumer(self, store: Store, attach: Attach) -> None:
        """It gives the messages back."""
        write_messages(store, "t", NUMBER)
        consumer = attach(SubscriptionType.SHARED)
        receive_all(consumer)
        with counted(store) as operations:
            consumer.close()
        assert operations.total < 200
        assert len(receive(attach(SubscriptionType.SHARED))) == 99

    def test_evicting_a_consumer(self, store: Store, attach: Attach) -> None:
        """An operator takes the messages from it."""
        write_messages(store, "t", NUMBER)
        receive_all(attach(SubscriptionType.SHARED))
        with counted(store) as operations:
            result = store.admin.subscriptions.evict_consumers("t", "a")
        assert result.effects.change.messages_released == NUMBER
        assert operations.total < 200

    def test_acknowledging_many(self, store: Store, attach: Attach) -> None:
        """In one call, 5,000 messages."""
        write_messages(store, "t", NUMBER)
        consumer = attach(SubscriptionType.SHARED)
        messages = [message for _ in range(5) for message in consumer.receive_batch(1000, timeout=0)]
        with counted(store) as operations:
            consumer.acknowledge(messages)
        assert operations.total < 200

    def test_giving_back_many(self, store: Store, attach: Attach) -> None:
        """An operator names 5,000 messages; each comes again after the delay."""
        write_messages(store, "t", NUMBER)
        consumer = attach(SubscriptionType.SHARED)
        receive_all(consumer)
        ids = [MessageId(1, at) for at in range(0, 10_000, 2)]
        with counted(store) as operations:
            result = store.admin.acknowledgements.negative_acknowledge_messages("t", "a", ids, delay=0)
        assert result.given_back == 5000
        assert operations.total < 200
        assert [message.message_id.entry_id for message in receive(consumer, 3)] == [0, 2, 4]

    def test_seeking(self, store: Store, attach: Attach) -> None:
        """The messages in flight are withdrawn."""
        write_messages(store, "t", NUMBER)
        receive_all(attach(SubscriptionType.SHARED))
        with counted(store) as operations:
            result = store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        assert result.effects.change.messages_withdrawn == NUMBER
        assert operations.total < 200


SIZES = (1, 1, 3, 128, 1, 129, 10)
"""Messages of the entries in turn; an entry of 129 has a record of its own."""

FATES = st.tuples(st.sampled_from([NOBODY, PENDING, 1, 2]), st.integers(0, 2))
Step = tuple[str, int, int, tuple[int, int]]
ENTRIES, MESSAGES = st.integers(0, 2100), st.integers(0, (1 << 129) - 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), ENTRIES, MESSAGES, FATES),
        st.tuples(st.just("put"), ENTRIES, st.just((1 << 129) - 1), FATES),
        st.tuples(st.just("settle"), ENTRIES, MESSAGES, FATES),
        st.tuples(st.just("through"), st.integers(-1, 2100), st.just(0), FATES),
        st.tuples(st.just("release"), st.just(0), st.just(0), FATES),
    ),
    max_size=30,
)


def attach_to(store: Store, type_: SubscriptionType, window: int = MANY) -> Consumer:
    return store.subscribe("t", "a", subscription_type=type_, receiver_queue_size=window)


def receive_beside(
    store: Store, attach: Attach, number: int, type_: SubscriptionType, *, gives_back: bool = True
) -> Consumer:
    """Have so many messages in flight, each of a ledger of its own and so under a record of its own."""

    def close_soon(batch: WriteBatch) -> None:
        OpenTopic.load(batch, topics.get(batch, "t").topic_id).state.ledger_entries_max = 1

    store.connection.write(close_soon)
    consumer = attach(type_, window=MANY)
    write_messages(store, "t", number)
    received = consumer.receive_batch(number, timeout=0)
    assert count_records(store) == len(received) == number
    if gives_back:
        consumer.negative_acknowledge(received[number // 2], delay=3600)
    return consumer


def receive_costs(tmp_path: Path, type_: SubscriptionType) -> list[int]:
    """Operations of a receive and its acknowledgement beside few and beside many records, one with a free message."""
    costs = []
    for number in (FEW, MANY):
        Store.create(tmp_path / str(number))
        # A clock that stands: what is due once a second comes into no count.
        with Store.open(tmp_path / str(number), clock=ManualClock()) as store:
            store.create_topic("t")
            consumer = receive_beside(store, partial(attach_to, store), number, type_)
            for _ in range(2):
                send(store, "new")
                with counted(store) as operations:
                    consumer.acknowledge(consumer.receive(timeout=0))
            costs.append(operations.overall)
    return costs


class TestFree:
    """Messages given back, which are looked for at each dispatch."""

    @pytest.mark.parametrize(
        "type_", [SubscriptionType.EXCLUSIVE, SubscriptionType.FAILOVER, SubscriptionType.SHARED]
    )
    def test_a_dispatch_looks_at_the_records_with_free_messages(
        self, tmp_path: Path, type_: SubscriptionType
    ) -> None:
        """A receive beside a message that comes again in an hour costs no more with 1,000 records than with 10."""
        few, many = receive_costs(tmp_path, type_)
        assert many <= few

    def test_a_dispatch_of_key_shared_reads_each_record_three_times(self, tmp_path: Path) -> None:
        """In the look before it, in its batch, and there as the object that the batch shares (docs/decisions/0089)."""
        few, many = receive_costs(tmp_path, SubscriptionType.KEY_SHARED)
        assert many - few <= 3 * (MANY - FEW) + FEW

    def test_what_another_consumer_gives_back_is_found(
        self, store: Store, attach: Attach, clock: ManualClock
    ) -> None:
        """In records before and behind the remembered one, in the order of the log."""
        consumer = receive_beside(store, attach, FEW, SubscriptionType.SHARED)
        other = attach(SubscriptionType.SHARED)
        assert values(other) == []
        with store.connection.view() as view:
            positions = [delivery.at for delivery in every(view, 1)]
        for number in (8, 1):
            consumer.negative_acknowledge(MessageId(*positions[number]), delay=0)
        assert drain(other) == [b"1", b"8"]
        clock.advance(3601)
        assert drain(other) == [b"5"]

    def test_a_lost_record_is_noticed_at_a_remembered_place(self, tmp_path: Path) -> None:
        """The record of a free message is gone, which would never be delivered again."""
        Store.create(tmp_path / "damaged")
        with Store.open(tmp_path / "damaged") as store:
            store.create_topic("t")
            consumer = receive_beside(store, partial(attach_to, store), FEW, SubscriptionType.SHARED)
            assert values(consumer) == []

            def lose(batch: WriteBatch) -> None:
                (free,) = [record for record in records(batch, 1) if record.is_released]
                batch.remove(DELIVERIES, span.key(1, free.at))

            store.connection.write(lose)
            with pytest.raises(CorruptStore, match="0 entries with free messages are found"):
                consumer.receive(timeout=0)


@pytest.mark.parametrize("in_transaction", [False, True])
def test_a_cumulative_acknowledgement_reads_the_records_before_it(
    tmp_path: Path, in_transaction: bool
) -> None:
    """The fifth message is acknowledged beside 1,000 records at the cost of 10."""
    costs = []
    for number in (FEW, MANY):
        Store.create(tmp_path / str(number))
        with Store.open(tmp_path / str(number)) as store:
            store.create_topic("t")
            consumer = receive_beside(
                store, partial(attach_to, store), number, SubscriptionType.FAILOVER, gives_back=False
            )
            with store.connection.view() as view:
                fifth = list(every(view, 1))[4].at
            txn = store.begin_transaction() if in_transaction else None
            with counted(store) as operations:
                consumer.acknowledge_cumulative(MessageId(*fifth), txn=txn)
            costs.append(operations.overall)
    assert costs[1] <= costs[0] + 4


@pytest.mark.parametrize("change", ["evict", "die"])
def test_many_consumers_that_go_read_the_records_once(tmp_path: Path, change: str) -> None:
    """A hundred consumers, evicted or found dead together, free their messages in one pass over the records."""
    costs = []
    for number in (1, 100):
        Store.create(tmp_path / str(number))
        with Store.open(tmp_path / str(number)) as store:
            store.create_topic("t")
            receive_beside(store, partial(attach_to, store), 200, SubscriptionType.SHARED)
            leases = join(store, number)
            if change == "die":
                for lease in leases:
                    store.connection.environment.locks.leases.drop(lease)
            with counted(store) as operations:
                if change == "die":
                    attach_to(store, SubscriptionType.SHARED)
                else:
                    store.admin.subscriptions.evict_consumers("t", "a")
            costs.append(operations.overall)
    assert costs[1] - costs[0] <= 99 * 12


def test_spans_hold_what_single_records_would(store: Store, attach: Attach) -> None:
    """The same fate for every message, and the same count of entries with free messages, as a plain mapping."""
    attach(SubscriptionType.SHARED)

    def run(batch: WriteBatch) -> None:
        @given(STEPS)
        def check(steps: list[Step]) -> None:
            check_steps(opened(batch), steps)

        check()

    store.connection.write(run, dry_run=True)


def check_steps(subscription: Opened, steps: list[Step]) -> None:
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    places = FreePlaces()
    subscription.deliveries.clear()
    for what, entry, bits, (holder, times) in steps:
        at, count = Position(1, entry), SIZES[entry % len(SIZES)]
        messages = bits & (1 << count) - 1
        if what == "put":
            delivery = subscription.deliveries.find(at) or Delivery(at, count, [])
            assert delivery.count == count
            delivery.take(messages)
            if messages:
                delivery.give(DeliveryPart(messages, holder, times))
            subscription.deliveries.put(delivery)
            expected.update({(entry, index): (holder, times) for index in indexes(messages)})
        elif what == "settle":
            subscription.deliveries.settle(at, messages)
            for index in indexes(messages):
                expected.pop((entry, index), None)
        elif what == "through":
            subscription.deliveries.settle_through(at)
            expected = {which: fate for which, fate in expected.items() if which[0] > entry}
        else:
            held = [which for which, fate in expected.items() if fate[0] == 1]
            assert subscription.deliveries.release([1], lambda *_: 0, was_received=True) == len(held)
            expected.update({which: (NOBODY, expected[which][1]) for which in held})
        check_encoding(subscription)
        free = list(subscription.deliveries.free(lambda record: record.of(NOBODY), places))
        assert {
            (delivery.at.entry_id, index) for delivery in free for index in indexes(delivery.of(NOBODY))
        } == {which for which, (holder, _) in expected.items() if holder == NOBODY}
        assert [delivery.at for delivery in free] == sorted(delivery.at for delivery in free)
    stored = list(every(subscription.view, subscription.subscription_id))
    found = {
        (delivery.at.entry_id, index): part.fate()[:2]
        for delivery in stored
        for part in delivery.parts
        for index in indexes(part.messages)
    }
    assert found == expected
    assert [delivery.at for delivery in stored] == sorted(delivery.at for delivery in stored)
    assert all(delivery.count == SIZES[delivery.at.entry_id % len(SIZES)] for delivery in stored)
    released = {entry for (entry, _), (holder, _) in expected.items() if holder == NOBODY}
    assert subscription.cursor.released == len(released)


def check_encoding(subscription: Opened) -> None:
    """Every record is read as it was written."""
    for record in subscription.deliveries.records():
        if record.is_span and record.parts:
            key = span.key(subscription.subscription_id, record.at)
            again = Delivery.decode(key, memoryview(record.encode()))
            assert again.encode() == record.encode()
            assert again.released == record.released


class TestSplitting:
    """Messages that a change names are taken a span at a time where each of them may be."""

    def test_named_messages_in_flight(self, store: Store, attach: Attach) -> None:
        """By span; apart are an acknowledged entry, a message beyond its entry, and a large batch."""
        producer = store.create_producer("t")
        for size in (1, 3, 1, SPAN_MESSAGES_MAX + 1):
            producer.send_batch([b"x"] * size)
        consumer = attach(SubscriptionType.SHARED)
        consumer.acknowledge(receive(consumer)[0])
        large = (Position(1, 3), 1 << SPAN_MESSAGES_MAX)
        items = [(Position(1, 1), 0), (Position(1, 2), 1), large, (Position(1, 0), 1)]

        def split(batch: WriteBatch) -> tuple[list[tuple[Position, int]], list[tuple[Position, int]]]:
            taken, rest = opened(batch).deliveries.split_by_span(items, Delivery.in_flight)
            return [(record.at, messages) for record, messages in taken], rest

        taken, rest = store.connection.write(split)
        whole = span.place(Position(1, 1), 0b111) | span.place(Position(1, 2), 1)
        assert taken == [(Position(1, 0), whole)]
        assert sorted(rest) == [(Position(1, 0), 1), large]

    def test_a_span_with_many_fates_is_changed_by_entry(self, store: Store, attach: Attach) -> None:
        """Each entry beyond the bound of different fates has a record of its own, and every message is delivered."""
        send(store, *map(str, range(SPAN_FATES_MAX)))

        def hold(batch: WriteBatch) -> None:
            deliveries = opened(batch).deliveries
            for at in range(SPAN_FATES_MAX):
                part = DeliveryPart(1, NOBODY, at)
                deliveries.put(Delivery(Position(1, at), 1, [part]))

        attach(SubscriptionType.SHARED).close()
        store.connection.write(hold)
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
        store.connection.write(hold)

        def deliver(batch: WriteBatch) -> None:
            chosen = [(Position(1, at), 1, 1) for at in range(SPAN_FATES_MAX)]
            opened(batch).deliveries.change_in_spans(
                chosen, lambda known, messages: known.deliver(messages, 9)
            )

        store.connection.write(deliver)
        with store.connection.view() as view:
            subscription = subscriptions.get(view, topics.get(view, "t"), "a")
            times = [
                (known.parts[0].holder, known.parts[0].times)
                for known in every(view, subscription.subscription_id)
            ]
        assert times == [(9, at + 1) for at in range(SPAN_FATES_MAX)]
        store.admin.subscriptions.seek_subscription("t", "a", EARLIEST)
