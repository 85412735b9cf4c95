"""Activity: `storage/reports/activity.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.limits import OLDEST_VISIBLE_STEPS, RECENT_ENDS_MS
from storage.process.clock import ManualClock
from storage.reports.activity import RecentEnds
from storage.values.counters import COMMITS, MESSAGES_WRITTEN


def oldest(store: Store) -> list[int | None]:
    """The ages of the oldest visible messages, in milliseconds."""
    now_ms = store.connection.clock.wall_ms()
    rows = store.reports.store_activity().oldest_visible
    return [None if row.published_at_ms is None else now_ms - row.published_at_ms for row in rows]


def test_counters_are_those_of_the_store(store: Store) -> None:
    """From a handle that reads as well."""
    before = store.reports.store_activity().counters
    with store.create_producer("t") as producer, store.transaction() as txn:
        producer.send_batch([b"a", b"b"], txn=txn)
    with Store.open(store.connection.path, read_only=True) as reader:
        after = reader.reports.store_activity().counters
    assert after.events[MESSAGES_WRITTEN] - before.events[MESSAGES_WRITTEN] == 2
    assert after.events[COMMITS] - before.events[COMMITS] == 1


def test_ends_of_late_are_counted(store: Store, clock: ManualClock) -> None:
    """Until they are five minutes old."""
    producer = store.create_producer("t")
    store.create_table("accounts")
    for ends in (store.commit_transaction, store.admin.transactions.abort_transaction):
        txn = store.begin_transaction()
        producer.send(b"x", txn=txn)
        ends(txn)
    store.begin_transaction()
    assert store.reports.store_activity().ends == RecentEnds(1, 1, 0, None)
    clock.advance(RECENT_ENDS_MS / 1000 + 1)
    assert store.reports.store_activity().ends == RecentEnds(0, 0, 0, None)


def test_conflicts_name_their_table(store: Store) -> None:
    """The one with the most."""
    store.create_table("accounts")
    table = store.table("accounts")
    first = store.transaction()
    table.get(b"k", txn=first)
    table.put(b"k", b"1")
    with pytest.raises(Exception, match="aborted"), first:
        table.put(b"k", b"2", txn=first)
    ends = store.reports.store_activity().ends
    assert (ends.aborted, ends.conflicts, ends.contended) == (1, 1, "accounts")


class TestOldestVisible:
    """The age of the oldest visible message."""

    def test_it_is_the_first_that_is_not_acknowledged(self, store: Store, clock: ManualClock) -> None:
        """Acknowledged and aborted messages do not count, those in flight do."""
        consumer = store.subscribe(
            "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        assert oldest(store) == [None]
        producer, txn = store.create_producer("t"), store.begin_transaction()
        producer.send(b"aborted", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        for _ in range(3):
            clock.advance(10)
            producer.send(b"x")
        assert oldest(store) == [20_000]
        messages = [consumer.receive() for _ in range(3)]
        consumer.acknowledge(messages[1])
        assert oldest(store) == [20_000]
        consumer.acknowledge(messages[0])
        assert oldest(store) == [0]
        consumer.acknowledge(messages[2])
        assert oldest(store) == [None]

    def test_message_before_its_delivery_time_is_not_visible(self, store: Store, clock: ManualClock) -> None:
        """On a type that heeds it."""
        for name, type in (("ordered", SubscriptionType.EXCLUSIVE), ("shared", SubscriptionType.SHARED)):
            store.subscribe("t", name, subscription_type=type, initial_position=EARLIEST).close()
        store.create_producer("t").send(b"x", deliver_at=clock.wall_ms() + 60_000)
        clock.advance(30)
        assert oldest(store) == [30_000, None]
        clock.advance(30)
        assert oldest(store) == [60_000, 60_000]

    def test_search_ends_after_a_thousand_entries(self, store: Store, clock: ManualClock) -> None:
        """With the time of the last one that was looked at."""
        producer, txn = store.create_producer("t"), store.begin_transaction()
        store.subscribe("t", "s", initial_position=EARLIEST).close()
        for _ in range(OLDEST_VISIBLE_STEPS):
            producer.send(b"x", txn=txn)
        store.admin.transactions.abort_transaction(txn)
        clock.advance(5)
        producer.send(b"y")
        assert oldest(store) == [5_000]
