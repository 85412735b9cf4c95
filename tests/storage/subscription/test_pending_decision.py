"""Acknowledgements of a transaction, applied or released: `storage/subscription/pending_decision.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, AccessMode, Consumer, OnOpen, Store, SubscriptionType, TxnID
from storage.disk.codec import key4
from storage.disk.schema import PENDING, TXN_PENDING
from storage.disk.view import WriteBatch
from storage.subscription import catalogue as subscriptions, pending_records
from storage.topic import catalogue as topics
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_messages
from tests.storage.walk_steps import (
    EXCLUSIVE,
    KEY_SHARED,
    RC,
    RU,
    SHARED,
    TYPES,
    Attach,
    receive,
    send,
    values,
)

NUMBER = 20_000

End = Callable[[Store, TxnID], object]


def pend(store: Store, consumer: Consumer, number: int, every: int = 1) -> TxnID:
    """A transaction with a message on the topic, and an acknowledgement of each `every`-th message."""
    txn = store.begin_transaction(timeout=3600)
    producer = store.create_producer("t", access_mode=AccessMode.EXCLUSIVE)
    producer.send(b"uncommitted", txn=txn)
    while number > 0:
        batch = consumer.receive_batch(1000, timeout=0)
        consumer.acknowledge([batch[at] for at in range(0, len(batch), every)], txn=txn)
        number -= len(batch)
    return txn


def count_pending(store: Store) -> int:
    return store.reports.subscription_stats("t", "a").row.stats.pending


def abort(store: Store, txn: TxnID) -> object:
    return store.admin.transactions.abort_transaction(txn)


def fence(store: Store, txn: TxnID) -> object:
    return store.admin.producers.fence_producers("t")


def commit(store: Store, txn: TxnID) -> object:
    return store.commit_transaction(txn)


@pytest.mark.parametrize("end", [abort, fence, commit])
@pytest.mark.parametrize("type_", [SHARED, EXCLUSIVE])
def test_the_end_of_20000_pending_acknowledgements(
    store: Store, attach: Attach, type_: SubscriptionType, end: End
) -> None:
    """Each of an entry of its own: the work is that of 20 spans, counts of the backlogs included."""
    write_messages(store, "t", NUMBER)
    consumer = attach(type_)
    txn = pend(store, consumer, NUMBER)
    assert count_pending(store) == NUMBER
    with counted(store) as operations:
        end(store, txn)
    assert operations.total < 500
    with store.connection.view() as view:
        assert view.count(PENDING) == view.count(TXN_PENDING) == 0
    assert count_pending(store) == 0
    assert len(receive(consumer)) == (1 if end is commit else 99)


@pytest.mark.parametrize("end", [abort, commit])
def test_each_second_message(store: Store, attach: Attach, end: End) -> None:
    """The others stay in flight, and come again in order."""
    write_messages(store, "t", 3000)
    consumer = attach(SHARED)
    txn = pend(store, consumer, 3000, every=2)
    end(store, txn)
    consumer.close()
    left = range(1, 3000, 2) if end is commit else range(3000)
    with attach(SHARED) as again:
        received = [value for _ in range(4) for value in values(again, 1000)]
    assert received[: len(left)] == [b"%d" % at for at in left]


def test_records_of_an_earlier_release_beside_spans(store: Store, attach: Attach) -> None:
    """Each entry had two records; they end with their transaction, and forbid a second acknowledgement."""
    send(store, *"0123")
    consumer = attach(SHARED)
    messages, txn = receive(consumer), store.begin_transaction()
    consumer.acknowledge(messages[1:3], txn=txn)

    def write_as_before(batch: WriteBatch) -> None:
        subscription_id = subscriptions.get(batch, topics.get(batch, "t"), "a").subscription_id
        (record,) = pending_records.of_transaction(batch, txn.least, subscription_id)
        pending_records.remove(batch, subscription_id, record, 0b0010)
        batch.put(PENDING, key4(subscription_id, 1, 1, txn.least), b"")
        batch.put(TXN_PENDING, key4(txn.least, subscription_id, 1, 1), b"")

    store.connection.write(write_as_before)
    assert store.maintenance.verify_store(full=True) == []
    listed = [str(row.message_id) for row in store.reports.list_pending_acknowledgements("t", "a")]
    assert listed == ["1:1", "1:2"]
    consumer.acknowledge(messages[0], txn=txn)
    store.commit_transaction(txn)
    assert count_pending(store) == 0
    consumer.close()
    assert values(attach(SHARED)) == [b"3"]


@pytest.mark.parametrize(
    ("type_", "on_open"),
    [*((type_, OnOpen.BLOCK) for type_ in TYPES), (SHARED, OnOpen.SKIP), (KEY_SHARED, OnOpen.SKIP)],
)
def test_an_aborted_message_that_was_pending_leaves_the_backlog(
    store: Store, type_: SubscriptionType, on_open: OnOpen
) -> None:
    """Acknowledged in a transaction while uncommitted, and passed by dispatch at READ_COMMITTED before its release."""
    sending, consuming = store.begin_transaction(), store.begin_transaction()
    with store.create_producer("t") as producer:
        producer.send_batch([b"0", b"1"], keys=["k", "k"], txn=sending)
        producer.send(b"2", key="k", txn=sending)
    with store.subscribe(
        "t", "a", subscription_type=type_, subscription_isolation_level=RU, initial_position=EARLIEST
    ) as consumer:
        messages = receive(consumer)
        consumer.acknowledge([messages[0], messages[2]], txn=consuming)
    store.admin.transactions.abort_transaction(sending)
    store.admin.subscriptions.update_subscription("t", "a", subscription_isolation_level=RC, on_open=on_open)
    send(store, "plain", key="k")
    with store.subscribe("t", "a") as consumer:
        (plain,) = receive(consumer)
        store.admin.transactions.abort_transaction(consuming)
        assert store.maintenance.verify_store(full=True) == []
        counts = store.reports.subscription_stats("t", "a").row.stats
        assert (counts.aborted_ahead, counts.visible, counts.msg_backlog) == (0, 1, 1)
        assert receive(consumer) == ([plain] if type_.is_ordered else [])
        consumer.acknowledge(plain)
    assert store.reports.subscription_stats("t", "a").row.stats.msg_backlog == 0
    assert store.maintenance.verify_store(full=True) == []


def test_an_abort_before_delayed_messages_keeps_their_count(store: Store, attach: Attach) -> None:
    """Dispatch examines the released message again, and nothing behind: delayed messages there wait as before."""
    producer = store.create_producer("t")
    producer.send(b"first")
    producer.send(b"late", deliver_after=60.0)
    consumer = attach(SHARED, subscription_isolation_level=RU)
    txn = store.begin_transaction(timeout=3600)
    consumer.acknowledge(consumer.receive(timeout=0), txn=txn)
    consumer.close()
    store.admin.subscriptions.update_subscription("t", "a", subscription_isolation_level=RC)
    consumer = attach(SHARED)
    assert receive(consumer) == []
    store.admin.transactions.abort_transaction(txn)
    assert store.maintenance.verify_store(full=True) == []
    stats = store.reports.subscription_stats("t", "a").row.stats
    assert (stats.visible, stats.delayed) == (1, 1)
    assert values(consumer) == [b"first"]
    assert store.reports.subscription_stats("t", "a").row.stats.delayed == 1
    assert store.maintenance.verify_store(full=True) == []
