"""The order of a key on Key_Shared, whatever a message waits for, and however it comes free (invariant 21)."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Consumer, MessageId, Store
from storage.errors import NotDeliverable
from storage.process.clock import ManualClock
from storage.subscription.dispatch import delay_walk
from tests.storage.txn.compaction_steps import compact, send as send_keys
from tests.storage.walk_steps import KEY_SHARED, Attach, values


def test_a_due_message_of_a_committed_transaction_comes_before_its_marker_is_met(
    store: Store, clock: ManualClock, attach_skipping: Attach
) -> None:
    """A later message of the key, due as well, waits until dispatch has met the marker of the earlier one."""
    producer, txn = store.create_producer("t"), store.begin_transaction(timeout=60)
    consumer = attach_skipping(KEY_SHARED)
    producer.send(b"1", key="k", deliver_after=5, txn=txn)
    producer.send(b"2", key="k", deliver_after=5)
    producer.send_batch([b"o"] * 3000)
    assert values(consumer, 1000) == [b"o"] * 1000
    store.commit_transaction(txn)
    clock.advance(6)
    rest = [value for _ in range(30) for value in values(consumer, 1000)]
    assert [value for value in rest if value != b"o"] == [b"1", b"2"]


def test_a_message_that_an_aborted_acknowledgement_gave_back_comes_first(
    store: Store, attach_skipping: Attach
) -> None:
    """A later message of the key waits, on a subscription that begins inside a batch too."""
    producer, txn, acking = store.create_producer("t"), store.begin_transaction(), store.begin_transaction()
    first = list(producer.send_batch([b"before", b"1"], keys=["b", "k"], txn=txn))[1]
    a, b = (attach_skipping(KEY_SHARED, window=1, initial_position=first) for _ in range(2))
    producer.send(b"other")
    assert values(b, 1) == [b"other"]
    producer.send(b"2", key="k")
    producer.send(b"x", txn=txn)
    producer.send(b"3", key="k")
    store.commit_transaction(txn)
    (one,) = b.receive_batch(1, timeout=0)
    assert one.value == b"1"
    assert values(a, 1) == [b"x"]
    b.acknowledge(one, txn=acking)
    store.admin.transactions.abort_transaction(acking)
    assert values(a, 1) == [b"1"]
    assert values(a, 1) == [b"2"]


def test_messages_due_together_come_in_order(
    store: Store, clock: ManualClock, attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many messages one look examines, and whichever of them was due first."""
    monkeypatch.setattr(delay_walk, "DUE_TOGETHER_MAX", 1)
    producer, consumer = store.create_producer("t"), attach(KEY_SHARED, window=1)
    for number in range(5):
        producer.send(b"%d" % number, key="k", deliver_after=9 - number)
    assert values(consumer) == []
    clock.advance(10)
    assert [value for _ in range(5) for value in values(consumer)] == [b"0", b"1", b"2", b"3", b"4"]


def test_a_due_message_of_an_open_transaction_holds_its_key(
    store: Store, clock: ManualClock, attach_skipping: Attach
) -> None:
    """A later message of the key passes before that time, waits after it, and can be acknowledged if it was received."""
    producer, txn = store.create_producer("t"), store.begin_transaction(timeout=60)
    consumer = attach_skipping(KEY_SHARED)
    producer.send(b"1", key="k", deliver_after=5, txn=txn)
    producer.send_batch([b"2", b"other"], keys=["k", "l"])
    two, other = consumer.receive_batch(9, timeout=0)
    assert two.value == b"2"
    consumer.acknowledge(other)
    clock.advance(6)
    (behind,) = producer.send_batch([b"3"], keys=["k"])
    assert values(consumer) == []
    with pytest.raises(NotDeliverable):
        store.admin.acknowledgements.acknowledge_messages("t", "a", [behind])
    consumer.acknowledge(MessageId(*two.message_id.position))
    store.commit_transaction(txn)
    assert values(consumer) == [b"1", b"3"]


def test_a_late_message_of_a_transaction_comes_before_queued_messages_of_its_key(
    store: Store, clock: ManualClock, attach_skipping: Attach
) -> None:
    """One consumer's look behind the marker sends back what another has queued while the message was not due."""
    producer, txn = store.create_producer("t"), store.begin_transaction(timeout=60)
    first, second = attach_skipping(KEY_SHARED), attach_skipping(KEY_SHARED)
    producer.send(b"late", key="k", deliver_after=5, txn=txn)
    producer.send_batch([b"first", b"last"], keys=["k", "k"])
    assert values(first, 1) == [b"first"]
    clock.advance(6)
    store.commit_transaction(txn)
    (late,) = second.receive_batch(9, timeout=0)
    assert late.value == b"late"
    assert values(first) == []
    second.acknowledge(late)
    assert values(first) == [b"last"]


# Messages that only the compacted view has


@pytest.fixture
def viewed(store: Store) -> None:
    """`a` and `b`, trimmed and in the view alone, given back by a consumer that read the view."""
    store.admin.topics.set_retention("t", time_ms=0)
    send_keys(store, ("a", "1"), ("b", "1"))
    compact(store)
    store.admin.topics.trim_topic("t")
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        assert len(consumer.receive_batch(10, 0)) == 2


def shared(store: Store, window: int) -> Consumer:
    return store.subscribe("t", "s", subscription_type=KEY_SHARED, receiver_queue_size=window)


@pytest.mark.usefixtures("viewed")
def test_a_message_of_the_view_holds_its_key(store: Store) -> None:
    """The later message of its key waits until the consumer that holds the earlier one has acknowledged it."""
    one, two = shared(store, 1), shared(store, 10)
    first = one.receive(0)
    assert first.key == b"a"
    send_keys(store, ("a", "2"), ("y", "1"))
    received = [message.key for _ in range(3) for message in two.receive_batch(10, 0)]
    assert received == [b"b", b"y"]
    one.acknowledge(first)
    assert values(two, 10) == [b"2"]


@pytest.mark.usefixtures("viewed")
def test_a_queue_is_examined_beside_messages_of_the_view(store: Store) -> None:
    """An operator takes a message of another consumer, so that the queue is compared with all that waits."""
    one = shared(store, 2)
    assert [message.key for message in one.receive_batch(2, 0)] == [b"a", b"b"]
    two = shared(store, 100)
    send_keys(store, *((f"k{number:02}", "1") for number in range(12)))
    received = [two.receive(0).key or b""]
    store.admin.subscriptions.skip_messages("t", "s", 1)
    received += [message.key or b"" for message in two.receive_batch(10, 0)]
    assert received == sorted(set(received))
    assert len(received) > 1
