"""Acknowledgements by span: `storage/subscription/ack_spans.py`."""

from __future__ import annotations

from hypothesis import given, strategies as st

from storage import MessageId, Store
from storage.disk.codec import key3
from storage.disk.schema import ACKS
from storage.disk.view import WriteBatch
from storage.subscription import ack_spans, acked_ranges, catalogue as subscriptions, span
from storage.subscription.ack_spans import NOTHING, AckedMessages
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics
from storage.values.position import Position
from tests.storage.damage import broken_by
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages
from tests.storage.walk_steps import SHARED, Attach, receive, send, values


def subscription_id(batch: WriteBatch) -> int:
    return subscriptions.get(batch, topics.get(batch, "t"), "a").subscription_id


def count_records(store: Store) -> int:
    with store.connection.view() as view:
        return view.count(ACKS)


@given(messages=st.integers(1, (1 << 60) - 1))
def test_the_end_of_a_run(messages: int) -> None:
    """The last entry of a stretch without a gap."""
    index = (messages & -messages).bit_length() - 1
    end = ack_spans.end_of_run(messages, index)
    assert all(messages >> at & 1 for at in range(index, end + 1))
    assert not messages >> end + 1 & 1


def test_each_second_message(store: Store, attach: Attach) -> None:
    """3,000 messages one by one make 3 records, and the others come in order to the next consumer."""
    write_messages(store, "t", 3000)
    with attach(SHARED) as consumer:
        for _ in range(3):
            batch = consumer.receive_batch(1000, timeout=0)
            for at in range(999, -1, -2):
                consumer.acknowledge(batch[at])
    assert count_records(store) == 3
    again = attach(SHARED)
    received = [value for _ in range(2) for value in values(again, 1000)]
    assert received == [b"%d" % at for at in range(0, 3000, 2)]
    with counted(store) as operations:
        store.admin.transactions.abort_transaction(store.begin_transaction())
        again.acknowledge([MessageId(1, at) for at in range(0, 2000, 2)])
    assert operations.total < 200
    stats = store.reports.subscription_stats("t", "a").row.stats
    assert stats.mark_delete_position == Position(1, 2000 - 1)


def test_a_whole_span_becomes_a_range(store: Store, attach: Attach) -> None:
    """However it was acknowledged; the entries behind it are a span of their own until that is whole."""
    write_messages(store, "t", 2100)
    consumer = attach(SHARED)
    messages = [message for _ in range(3) for message in consumer.receive_batch(1000, timeout=0)]
    for at in range(2047, 1023, -1):
        consumer.acknowledge(messages[at])
    for at in range(2048, 2060):
        consumer.acknowledge(messages[at])
    with store.connection.view() as view:
        keys = [key[8:] for key in view.keys(ACKS)]
        subscription_id = int.from_bytes(next(view.keys(ACKS))[:8], "big")
        assert acked_ranges.ranges(view, subscription_id) == [(Position(1, 1024), 2059, b"")]
    assert keys == [key3(0, 1, 1024)[8:], span.key(0, Position(1, 2048))[8:]]


def test_a_message_is_taken_back_from_a_span(store: Store, attach: Attach) -> None:
    """A redrive of one of several acknowledged messages leaves the others."""
    send(store, *"01234")
    consumer = attach(SHARED)
    messages = receive(consumer)
    consumer.acknowledge([messages[at] for at in (1, 2, 4)])

    def take_back(batch: WriteBatch) -> int:
        opened = OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "a"))
        taken = opened.acks.unacknowledge(Position(1, 2), 1, 1)
        assert opened.acks.unacknowledge(Position(1, 3), 1, 1) == 0
        assert ack_spans.of_span(batch, opened.subscription_id, Position(1, 0)) == (0b10010, 0)
        return taken

    assert store.connection.write(take_back, dry_run=True) == 1


def test_a_bit_of_a_batch(store: Store, attach: Attach) -> None:
    """Verify finds an entry that has more messages than the span knows: counts take each bit for a message."""
    producer = store.create_producer("t")
    producer.send(b"0")
    producer.send_batch([b"1", b"2"])
    attach(SHARED)
    first = Position(1, 0)
    wrong = AckedMessages(0b10, 0)
    found = broken_by(store, lambda batch: ack_spans.put(batch, subscription_id(batch), first, wrong))
    assert {8, 23} & found
    store.connection.write(lambda batch: ack_spans.put(batch, subscription_id(batch), first, NOTHING))
    assert span.EVERY.bit_count() == span.SPAN_ENTRIES
