"""Remains of deleted subscriptions: `storage/subscription/subscription_purge.py`."""

from __future__ import annotations

from collections.abc import Callable
from time import time

import pytest

from storage import EARLIEST, Consumer, IsolationLevel, Store, SubscriptionType
from storage.disk.codec import U64, key3
from storage.disk.schema import ACKS, DELAYED, DELAYED_DUE, PURGES
from storage.disk.view import WriteBatch
from storage.limits import PURGE_STEP_RECORDS
from storage.process.clock import ManualClock
from storage.subscription import catalogue as subscriptions, subscription_purge
from storage.topic import catalogue as topics
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_delayed, write_messages

NUMBER = 12_000
"""Records ahead of markDeletePosition, more than two steps remove."""
OPERATIONS_MAX = 4 * PURGE_STEP_RECORDS
"""A look and a removal for each record of a step, and room to count some messages."""


@pytest.fixture
def name(store: Store) -> str:
    """A subscription with a backlog of many single acknowledged entries, as batches leave them."""
    store.create_topic("old")
    write_messages(store, "old", 2 * NUMBER + 1)
    store.admin.subscriptions.create_subscription("old", "a", initial_position=EARLIEST)
    store.admin.subscriptions.create_subscription("old", "b", initial_position=EARLIEST)

    def acknowledge(batch: WriteBatch) -> None:
        subscription_id = subscriptions.get(batch, topics.get(batch, "old"), "a").subscription_id
        for entry in range(1, 2 * NUMBER, 2):
            batch.put(ACKS, key3(subscription_id, 1, entry), U64.pack(entry))

    store.connection.write(acknowledge)
    return "a"


def delete_alone(store: Store, topic: str, name: str) -> None:
    """The store transaction of a deletion, without the steps that follow."""
    store.connection.write(
        lambda batch: subscriptions.delete(batch, subscriptions.get(batch, topics.get(batch, topic), name))
    )


def delete(store: Store) -> object:
    return store.admin.subscriptions.delete_subscription("old", "a")


def unsubscribe(store: Store) -> object:
    return store.subscribe("old", "a").unsubscribe()


def delete_topic(store: Store) -> object:
    return store.admin.topics.delete_topic("old", force=True)


def expire(store: Store) -> object:
    store.admin.topics.set_retention("old", expire_after_ms=1000)
    store.subscribe("old", "b")
    clock = store.connection.clock
    assert isinstance(clock, ManualClock)
    clock.advance(10)
    store.begin_transaction()
    return store.maintenance.collect_garbage()


@pytest.mark.parametrize("end", [delete, unsubscribe, delete_topic, expire])
def test_a_deletion_removes_records_in_steps(store: Store, name: str, end: Callable[[Store], object]) -> None:
    """No hold of the gate removes more records than one step, and none is left at the end."""
    with store.connection.view() as view:
        assert view.count(ACKS) == NUMBER
    with counted(store) as operations:
        end(store)
    assert operations.most < OPERATIONS_MAX
    with store.connection.view() as view:
        assert (view.count(ACKS), view.count(PURGES)) == (0, 0)
    assert name not in {row.subscription for row in store.reports.list_subscriptions()}
    assert store.maintenance.verify_store(full=True) == []


def test_a_killed_deletion_is_finished_by_writes(store: Store, name: str, clock: ManualClock) -> None:
    """The subscription is gone at once; one of the same name is a new one, and the store is sound in between."""
    delete_alone(store, "old", name)
    with store.connection.view() as view:
        assert list(subscription_purge.ids(view)) != []
    assert store.maintenance.verify_store(full=True) == []
    store.admin.subscriptions.create_subscription("old", name, initial_position=EARLIEST)
    assert store.reports.subscription_stats("old", name).row.stats.visible == 2 * NUMBER + 1
    for _ in range(4):
        clock.advance(2)
        store.begin_transaction()
    with store.connection.view() as view:
        assert (view.count(ACKS), view.count(PURGES)) == (0, 0)
    assert store.maintenance.verify_store(full=True) == []


def test_delayed_messages_go_in_steps(store: Store) -> None:
    """Each has a record of its own, and one by due time."""
    with store.create_producer("t") as producer:
        for _ in range(7):
            producer.send_batch([b"x"] * 500, deliver_after=3600)
    with store.subscribe(
        "t", "a", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
    ) as consumer:
        assert not consumer.receive_batch(1, timeout=0)
    store.admin.subscriptions.delete_subscription("t", "a")
    with store.connection.view() as view:
        assert view.count(DELAYED) == view.count(DELAYED_DUE) == 0


@pytest.mark.parametrize("forget", ["seek", "type"])
def test_forgotten_delayed_messages_go_in_steps(store: Store, forget: str) -> None:
    """One store transaction removes some; those that dispatch passes again lie apart from the rest."""
    store.create_topic("late")
    first, later_ms = store.create_producer("late").send(b"x"), int(time() * 1000) + 30 * 86_400_000
    write_delayed(store, "late", 6000, later_ms)
    shared, level = SubscriptionType.SHARED, IsolationLevel.READ_UNCOMMITTED
    admin = store.admin.subscriptions
    admin.create_subscription(
        "late", "a", initial_position=EARLIEST, subscription_type=shared, subscription_isolation_level=level
    )
    admin.update_subscription("late", "a", subscription_isolation_level=IsolationLevel.READ_COMMITTED)

    def delayed() -> tuple[int, int]:
        """Delayed messages of the subscription, and records."""
        stats = store.reports.subscription_stats("late", "a").row.stats
        with store.connection.view() as view:
            return stats.delayed, view.count(DELAYED)

    def pass_all(consumer: Consumer) -> None:
        while consumer.receive_batch(1, timeout=0) or delayed()[1] < 6000:
            pass

    with store.subscribe("late", "a", subscription_type=shared) as consumer:
        txn = store.begin_transaction()
        message = consumer.receive(timeout=0)
        assert message.message_id == first
        consumer.acknowledge(message, txn=txn)
        pass_all(consumer)
        assert delayed() == (6000, 6000)
        store.commit_transaction(txn)
    with counted(store) as operations:
        if forget == "seek":
            admin.seek_subscription("late", "a", EARLIEST)
        else:
            admin.update_subscription("late", "a", subscription_type=SubscriptionType.EXCLUSIVE)
            admin.update_subscription("late", "a", subscription_type=shared)
    assert operations.most < 4 * PURGE_STEP_RECORDS + 2000
    assert delayed()[0] == 6000
    with store.connection.view() as view:
        assert view.count(PURGES) == 1
    assert store.maintenance.verify_store(full=True) == []
    with store.subscribe("late", "a", subscription_type=shared) as consumer:
        pass_all(consumer)
    assert delayed()[0] == 6000
    assert store.maintenance.verify_store(full=True) == []
    store.maintenance.collect_garbage()
    assert delayed() == (6000, 6000)
    admin.delete_subscription("late", "a")
    with store.connection.view() as view:
        assert (view.count(DELAYED), view.count(DELAYED_DUE), view.count(PURGES)) == (0, 0, 0)


def test_a_small_subscription_leaves_nothing(store: Store) -> None:
    """Its records go with its name."""
    store.admin.subscriptions.create_subscription("t", "a")
    delete_alone(store, "t", "a")
    with store.connection.view() as view:
        assert view.count(PURGES) == 0
