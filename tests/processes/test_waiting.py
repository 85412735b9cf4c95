"""Waiting readers and consumers wake at the commits of other processes, and hold no view meanwhile."""

from __future__ import annotations

import time

import pytest

from storage import EARLIEST, Store, SubscriptionType
from tests.processes.child import Children
from tests.row_json import row_json

FOLLOWER = """
    with Store.open(path, read_only=sys.argv[2] == "read only") as store:
        reader = store.reader("t", start=LATEST, isolation_level=IsolationLevel[sys.argv[3]])
        say("waiting")
        for _ in range(3):
            message = reader.read_next(timeout=60)
            say("read", message.value.decode())
"""

CONSUMER = """
    with Store.open(path) as store:
        with store.subscribe("t", "s") as consumer:
            say("waiting")
            while True:
                message = consumer.receive(timeout=60)
                consumer.acknowledge(message)
                say("received", message.value.decode())
                if message.value == b"last":
                    break
"""


@pytest.mark.parametrize("mode", ["read only", "read and write"])
@pytest.mark.parametrize("level", ["READ_COMMITTED", "READ_UNCOMMITTED"])
def test_a_waiting_reader_is_woken_by_the_commit_of_another_process(
    store: Store, children: Children, mode: str, level: str
):
    """Each message arrives while the reader waits for it, one after the other."""
    follower = children.run(FOLLOWER, mode, level)
    follower.expect("waiting")
    producer = store.create_producer("t")
    for value in ("one", "two", "three"):
        assert not follower.has_spoken(within=0.05)
        producer.send(value.encode())
        assert follower.expect("read") == value
    follower.succeed()


def test_a_read_committed_follower_is_woken_by_the_commit_of_what_blocked_it(
    store: Store, children: Children
):
    """It stands still before an open transaction of another process, and gets everything behind it at the commit."""
    follower = children.run(FOLLOWER, "read only", "READ_COMMITTED")
    dirty = children.run(FOLLOWER, "read only", "READ_UNCOMMITTED")
    follower.expect("waiting")
    dirty.expect("waiting")
    producer, txn = store.create_producer("t"), store.begin_transaction()
    producer.send(b"held", txn=txn)
    for value in (b"behind", b"behind too"):
        producer.send(value)
    assert [dirty.expect("read") for _ in range(3)] == ["held", "behind", "behind too"]
    assert not follower.has_spoken(within=0.2)
    store.commit_transaction(txn)
    assert [follower.expect("read") for _ in range(3)] == ["held", "behind", "behind too"]


def test_a_read_committed_follower_is_woken_by_the_abort_of_what_blocked_it(store: Store, children: Children):
    """An aborted message never comes; what waited behind it does."""
    follower = children.run(FOLLOWER, "read only", "READ_COMMITTED")
    follower.expect("waiting")
    producer, txn = store.create_producer("t"), store.begin_transaction()
    producer.send(b"dropped", txn=txn)
    for value in (b"1", b"2", b"3"):
        producer.send(value)
    store.admin.transactions.abort_transaction(txn, force=True)
    assert [follower.expect("read") for _ in range(3)] == ["1", "2", "3"]


def test_a_waiting_consumer_is_woken_by_the_commit_of_another_process(store: Store, children: Children):
    """Messages sent while it waits are received and acknowledged one by one."""
    store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
    consumer = children.run(CONSUMER)
    consumer.expect("waiting")
    producer = store.create_producer("t")
    for value in ("one", "two", "last"):
        assert not consumer.has_spoken(within=0.05)
        producer.send(value.encode())
        assert consumer.expect("received") == value
    consumer.succeed()
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0


def test_a_consumer_that_waits_ends_the_transaction_that_blocks_it_when_its_owner_dies(
    store: Store, children: Children
):
    """Nobody else writes: the waiting consumer itself finds the death and gets what stood behind."""
    store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
    owner = children.run(
        """
        with Store.open(path) as store:
            store.create_producer("t").send(b"never", txn=(txn := store.transaction()))
            txn.flush()
            say("began")
            hear()
        """
    )
    owner.expect("began")
    store.create_producer("t").send(b"last")
    consumer = children.run(CONSUMER)
    consumer.expect("waiting")
    assert not consumer.has_spoken(within=0.3)
    owner.kill()
    assert consumer.expect("received") == "last"
    consumer.succeed()


def test_a_consumer_that_waits_ends_the_transaction_that_blocks_it_at_its_deadline(
    store: Store, children: Children
):
    """A detached transaction is aborted by the waiting consumer when its time is up."""
    store.admin.subscriptions.create_subscription("t", "s", initial_position=EARLIEST)
    producer, txn = store.create_producer("t"), store.begin_transaction(timeout=1.0)
    producer.send(b"never", txn=txn)
    producer.send(b"last")
    consumer = children.run(CONSUMER)
    consumer.expect("waiting")
    assert consumer.expect("received") == "last"
    consumer.succeed()
    assert row_json(store.reports.show_transaction(txn))["reason"] == "timed-out"


@pytest.mark.parametrize("waits_as", ["reader", "consumer"])
def test_who_waits_keeps_no_old_view_open(store: Store, children: Children, waits_as: str):
    """While others commit hundreds of times, a waiting process never reads an old state: pages can be reused."""
    store.create_topic("busy")
    store.admin.subscriptions.create_subscription("t", "s", subscription_type=SubscriptionType.SHARED)
    waiter = (
        children.run(CONSUMER)
        if waits_as == "consumer"
        else children.run(FOLLOWER, "read only", "READ_COMMITTED")
    )
    waiter.expect("waiting")
    producer, since, idle, looks = store.create_producer("busy"), {}, 0, 0
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        producer.send(b"x" * 100)
        mine = [row for row in row_json(store.reports.list_readers()) if row["pid"] == waiter.pid]
        looks, idle = looks + 1, idle + all(row["state"] == "idle" for row in mine)
        now = time.monotonic()
        since = {row["commit"]: since.get(row["commit"], now) for row in mine if row["commit"] is not None}
        assert all(now - first < 0.7 for first in since.values()), "a view lives for a moment only"
    assert idle > looks // 3 > 0
    assert waiter.is_running
    used = row_json(store.reports.store_info())["usedBytes"]
    for _ in range(300):
        producer.send(b"x")
    assert row_json(store.reports.store_info())["usedBytes"] - used < 300 * 4096
