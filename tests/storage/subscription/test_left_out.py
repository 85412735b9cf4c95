"""Left out by READ_COMMITTED after markDeletePosition: `storage/subscription/left_out.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, IsolationLevel, Position, Store, SubscriptionType
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import write_in_turn

RC, RU = IsolationLevel


@pytest.fixture
def topic(store: Store) -> str:
    """A topic with small ledgers, and a subscription at its beginning."""
    store.create_topic("left", ledger_entries_max=1000)
    store.admin.subscriptions.create_subscription(
        "left", "a", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED
    )
    return "left"


def mark_delete(store: Store, topic: str) -> Position:
    return store.reports.subscription_stats(topic, "a").row.stats.mark_delete_position


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("txns", [1, 300])
def test_many_aborted_messages_are_passed_at_once(store: Store, topic: str, txns: int, behind: bool) -> None:
    """The work is that of counts: up to the end of the log, or to the first committed message."""
    begun = [store.begin_transaction(timeout=3600) for _ in range(txns)]
    write_in_turn(store, topic, begun, 10_000)
    for txn in begun:
        store.admin.transactions.abort_transaction(txn)
    last = store.reports.topic_stats(topic).counts.last_confirmed_entry
    if behind:
        with store.create_producer(topic) as producer:
            producer.send(b"committed")
            producer.send(b"another")
    with counted(store) as operations:
        store.admin.subscriptions.update_subscription(topic, "a", subscription_isolation_level=RU)
    assert mark_delete(store, topic) == last
    assert operations.total < (
        1000 if txns == 1 else 4000
    )  # each probe cuts the transactions that lie across it
    with store.subscribe(topic, "a") as consumer:
        received = [message.value for message in consumer.receive_batch(9, timeout=0)]
    assert received == ([b"committed", b"another"] if behind else [])


@pytest.mark.parametrize("which", [0, 3, 5])
def test_a_pending_message_is_the_last(store: Store, topic: str, which: int) -> None:
    """markDeletePosition stays before its entry; it comes again after an abort, at READ_UNCOMMITTED."""
    sending, consuming = store.begin_transaction(), store.begin_transaction()
    store.admin.subscriptions.update_subscription(topic, "a", subscription_isolation_level=RU)
    write_in_turn(store, topic, [sending], 6)
    with store.subscribe(topic, "a") as consumer:
        messages = list(consumer.receive_batch(9, timeout=0))
        consumer.acknowledge(messages[which], txn=consuming)
    store.admin.transactions.abort_transaction(sending)
    store.admin.subscriptions.update_subscription(topic, "a", subscription_isolation_level=RC)
    assert mark_delete(store, topic) == Position(1, which - 1)
    assert store.maintenance.verify_store(full=True) == []
    store.admin.transactions.abort_transaction(consuming)
    with store.subscribe(topic, "a") as consumer:
        assert consumer.receive_batch(9, timeout=0) == []
    assert mark_delete(store, topic) == Position(1, 6)
