"""Batch entries in spans: messages of an entry are bits of the span, in deliveries and acknowledgements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from storage import EARLIEST, Consumer, Message, MessageId, Store, SubscriptionType, TxnID
from storage.disk.codec import U64, key3
from storage.disk.schema import ACKS, DELIVERIES, PENDING
from storage.disk.view import WriteBatch
from storage.errors import TxnctlError
from storage.process.clock import ManualClock
from storage.subscription import ack_spans, catalogue as subscriptions, message_set, pending_records, span
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics
from storage.values.position import Position
from tests.model_runs import examples
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages
from tests.storage.walk_steps import SHARED, Attach, values

SIZE, ENTRIES = 10, 4000
NUMBER = SIZE * ENTRIES
FEW = 300
"""More operations than any change under the gate makes; a record for each entry would be 4,000 at least."""


def opened(batch: WriteBatch) -> OpenSubscription[WriteBatch]:
    return OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "a"))


def write_as_before(batch: WriteBatch) -> None:
    """Give each batch entry records of its own, as an earlier release wrote them."""
    subscription = opened(batch)
    _split_pending(batch, subscription)
    for record in list(subscription.deliveries.records()):
        for at in span.entries(record.at, record.known()) if record.is_span else ():
            delivery = record.of_entry(at)
            if delivery is not None and delivery.count > 1:
                record.take(span.place(at, span.MESSAGES))
                subscription.deliveries.put(record)
                delivery.has_record = True
                subscription.deliveries.put(delivery)
    for first, acknowledged in list(ack_spans.every(batch, subscription.subscription_id)):
        for at in span.entries(first, acknowledged.whole & span.present(acknowledged.sizes)):
            subscription.acks.acknowledge_entries(at[0], at[1], at[1])
        for at, messages in ack_spans.in_part(first, acknowledged):
            rest = ack_spans.of_span(batch, subscription.subscription_id, first)
            rest = rest.without(span.place(at, span.MESSAGES))
            ack_spans.put(batch, subscription.subscription_id, first, rest)
            own = U64.pack(at[1]) + message_set.encode(messages, messages.bit_length() + 1)
            batch.put(ACKS, key3(subscription.subscription_id, *at), own)


def _split_pending(batch: WriteBatch, subscription: OpenSubscription[WriteBatch]) -> None:
    number = subscription.subscription_id
    for record in list(pending_records.of_subscription(batch, number)):
        gone, entries = 0, list[tuple[Position, int, int]]()
        for at in record.positions() if record.is_span else ():
            delivery, messages = subscription.deliveries.find(at), span.of_entry(at, record.messages(0))
            if delivery is not None and delivery.count > 1:
                gone |= span.place(at, messages)
                entries.append((at, delivery.count, messages))
        if gone:
            pending_records.remove(batch, number, record, gone)
        for at, count, messages in entries:
            pending_records.add(batch, number, record.txn, at, count, messages)


def receive_all(consumer: Consumer) -> list[Message]:
    return [message for _ in range(NUMBER // 1000) for message in consumer.receive_batch(1000, timeout=0)]


def count(store: Store, *databases: object) -> int:
    with store.connection.view() as view:
        return sum(view.count(database) for database in databases)  # type: ignore[arg-type]


class TestWorkUnderTheGate:
    """Operations of LMDB under the writer gate, with 4,000 batches of 10 messages in flight."""

    @pytest.fixture
    def consumer(self, store: Store, attach: Attach) -> Consumer:
        write_messages(store, "t", NUMBER, size=SIZE)
        return attach(SHARED)

    def test_closing_and_receiving_again(self, store: Store, attach: Attach, consumer: Consumer) -> None:
        """Every message comes again, in order."""
        receive_all(consumer)
        assert count(store, DELIVERIES) == 4
        with counted(store) as operations:
            consumer.close()
        assert operations.total < FEW
        again = attach(SHARED)
        assert values(again, 25) == [b"%d" % at for at in range(25)]

    @pytest.mark.parametrize("every", [1, 2, 3])
    @pytest.mark.parametrize("committed", [True, False])
    def test_deciding(
        self, store: Store, attach: Attach, consumer: Consumer, every: int, committed: bool
    ) -> None:
        """Of a transaction that acknowledged each, or each second or third message, whatever batches they are in."""
        txn = store.begin_transaction()
        consumer.acknowledge(receive_all(consumer)[::every], txn=txn)
        assert count(store, PENDING, DELIVERIES) == 8
        admin = store.admin.transactions
        end: Callable[[TxnID], object] = store.commit_transaction if committed else admin.abort_transaction
        with counted(store) as operations:
            end(txn)
        assert operations.total < FEW
        stats = store.reports.subscription_stats("t", "a").row.stats
        left = NUMBER - len(range(0, NUMBER, every)) if committed else NUMBER
        assert stats.visible == left
        assert count(store, ACKS) <= 4
        consumer.close()
        expected = [at for at in range(NUMBER) if at % every] if committed else list(range(NUMBER))
        assert values(attach(SHARED), 50) == [b"%d" % at for at in expected[:50]]
        assert store.maintenance.verify_store(full=True) == []

    def test_acknowledging_and_giving_back_many(self, store: Store, consumer: Consumer) -> None:
        """In one call each, by message and by entry."""
        messages = receive_all(consumer)
        with counted(store) as operations:
            consumer.acknowledge(messages[5:20_000:2])
            consumer.acknowledge([MessageId(1, entry) for entry in range(2500, 3000)])
        assert operations.total < FEW
        ids = [message.message_id for message in messages[30_000:32_000]]
        with counted(store) as operations:
            result = store.admin.acknowledgements.negative_acknowledge_messages("t", "a", ids, delay=0)
        assert (result.given_back, operations.total < FEW) == (2000, True)
        assert values(consumer, 1000) == [b"%d" % at for at in range(30_000, 31_000)]

    def test_fencing_with_everything_pending(self, store: Store, consumer: Consumer) -> None:
        """The fence aborts the transaction, which gives every message back."""
        txn = store.begin_transaction()
        store.create_producer("t").send(b"x", txn=txn)
        consumer.acknowledge(receive_all(consumer), txn=txn)
        with counted(store) as operations:
            store.admin.producers.fence_producers("t")
        assert operations.total < 2 * FEW


Step = tuple[str, int, int]
STEP_NAMES = (
    "receive", "receive", "acknowledge", "acknowledge", "acknowledge_entries", "acknowledge_pending",
    "acknowledge_pending", "through", "commit", "abort", "give_back", "reattach", "wait", "send", "skip",
)  # fmt: skip
STEPS = st.lists(
    st.tuples(
        st.sampled_from(STEP_NAMES),
        st.integers(1, 90),
        st.integers(1, (1 << 40) - 1),
    ),
    max_size=25,
)
SIZES = (3, 1, 128, 2, 140, 1, 10)


class Run:
    """A store in which the steps of a case are done, and the messages that came of it."""

    def __init__(self, path: Path, type_: SubscriptionType) -> None:
        self.clock = ManualClock()
        Store.create(str(path), clock=self.clock)
        self.store = Store.open(str(path), clock=self.clock)
        self.store.create_topic("t")
        self.producer = self.store.create_producer("t")
        self.type = type_
        self.sent = 0
        self.log: list[object] = []
        self.txn: TxnID | None = None
        self.consumers = [self.attach()]
        self.messages: list[Message] = []

    def attach(self) -> Consumer:
        return self.store.subscribe(
            "t", "a", subscription_type=self.type, initial_position=EARLIEST, receiver_queue_size=20
        )

    def run(self, step: Step) -> None:
        """Do a step; an error is noted, to be compared."""
        what, number, chosen = step
        some = [message for at, message in enumerate(self.messages) if chosen >> at % 40 & 1][:number]
        try:
            getattr(self, what)(self.consumers[chosen % len(self.consumers)], some, number)
        except TxnctlError as error:
            self.log.append(error.code)

    def send(self, *_: object) -> None:
        size = SIZES[self.sent % len(SIZES)]
        rows = [b"%d" % (self.sent + at) for at in range(size)]
        keys = [b"%d" % ((self.sent + at) % 5) for at in range(size)]
        self.sent += size
        self.producer.send_batch(rows, keys=keys)

    def receive(self, consumer: Consumer, _: list[Message], number: int) -> None:
        received = consumer.receive_batch(number, timeout=0)
        self.log.append([(message.value, message.redelivery_count) for message in received])
        self.messages += received

    def acknowledge(self, consumer: Consumer, some: list[Message], _: int) -> None:
        consumer.acknowledge(some)

    def acknowledge_entries(self, _: Consumer, some: list[Message], __: int) -> None:
        ids = [MessageId(*message.message_id.position) for message in some[:3]]
        self.store.admin.acknowledgements.acknowledge_messages("t", "a", ids)

    def acknowledge_pending(self, consumer: Consumer, some: list[Message], _: int) -> None:
        self.txn = self.txn or self.store.begin_transaction(timeout=3600)
        consumer.acknowledge(some, txn=self.txn)

    def through(self, _: Consumer, some: list[Message], __: int) -> None:
        if some:
            self.consumers[0].acknowledge_cumulative(some[-1], txn=self.txn)

    def commit(self, *_: object) -> None:
        txn, self.txn = self.txn, None
        if txn is not None:
            self.store.commit_transaction(txn)

    def abort(self, *_: object) -> None:
        txn, self.txn = self.txn, None
        if txn is not None:
            self.store.admin.transactions.abort_transaction(txn)

    def give_back(self, consumer: Consumer, some: list[Message], number: int) -> None:
        for message in some:
            consumer.negative_acknowledge(message, delay=number % 3)

    def reattach(self, *_: object) -> None:
        self.consumers.append(self.attach())
        if len(self.consumers) > 2:
            self.consumers.pop(0).close()

    def wait(self, *_: object) -> None:
        self.clock.advance(2)

    def skip(self, _: Consumer, __: list[Message], number: int) -> None:
        self.store.admin.subscriptions.skip_messages("t", "a", number)

    def end(self) -> None:
        """Close everything, and deliver the rest."""
        for consumer in self.consumers:
            consumer.close()
        stats = self.store.reports.subscription_stats("t", "a").row.stats
        self.log.append((stats.visible, stats.pending, stats.acknowledged_ahead, stats.mark_delete_position))
        self.clock.advance(10)
        consumer = self.attach()
        rest = consumer.receive_batch(10_000, timeout=0)
        while rest:
            self.log.append([(message.value, message.redelivery_count) for message in rest])
            rest = consumer.receive_batch(10_000, timeout=0)
        assert self.store.maintenance.verify_store(full=True) == []
        self.store.close()


@pytest.mark.parametrize(
    "type_", [SubscriptionType.SHARED, SubscriptionType.KEY_SHARED, SubscriptionType.EXCLUSIVE]
)
def test_records_of_an_earlier_release_mean_the_same(
    type_: SubscriptionType, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After any steps, of which some find records of their own for batch entries, and some find spans."""

    @settings(max_examples=examples(40))
    @given(STEPS, st.integers(0, (1 << 40) - 1))
    def check(steps: list[Step], turns: int) -> None:
        new, old = (Run(tmp_path_factory.mktemp("run") / name, type_) for name in ("new", "old"))
        for number, step in enumerate([("send", 0, 0)] * 7 + steps):
            new.run(step)
            old.run(step)
            if turns >> number & 1:
                old.store.connection.write(write_as_before)
                assert old.store.maintenance.verify_store(full=True) == []
        new.end()
        old.end()
        assert new.log == old.log

    check()
