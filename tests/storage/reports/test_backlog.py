"""Backlog: `storage/reports/backlog.py`."""

from __future__ import annotations

from storage import EARLIEST, IsolationLevel, Store
from tests.row_json import row_json


def split(store: Store, name: str) -> list[int]:
    stats = row_json(store.reports.subscription_stats("t", name))
    return [stats[key] for key in ("visible", "blocked", "uncommitted", "pending", "abortedAhead")]


class TestSubscriptions:
    """`subscriptionIsolationLevel` and the split backlog, with and without a consumer."""

    def test_level_and_split_of_each(self, busy: Store) -> None:
        """At READ_COMMITTED the backlog is split; at READ_UNCOMMITTED everything stored is visible."""
        stats = row_json(busy.reports.topic_stats("t"))["subscriptions"]
        assert {name: each["subscriptionIsolationLevel"] for name, each in stats.items()} == {
            "D": "READ_UNCOMMITTED", "E": "READ_COMMITTED", "S": "READ_COMMITTED",
        }  # fmt: skip
        assert split(busy, "E") == [2, 4, 2, 0, 3]
        assert split(busy, "D") == [11, 0, 0, 0, 0]
        assert (stats["E"]["msgBacklog"], stats["D"]["msgBacklog"]) == (8, 11)

    def test_in_flight_is_part_of_visible(self, busy: Store) -> None:
        """And pending is a class of its own."""
        consumer = busy.subscribe("t", "E")
        messages = consumer.receive_batch(9, timeout=0)
        assert split(busy, "E")[:4] == [2, 4, 2, 0]
        assert row_json(busy.reports.subscription_stats("t", "E"))["unackedMessages"] == 2
        consumer.acknowledge(messages[0], txn=busy.begin_transaction())
        assert split(busy, "E")[:4] == [1, 4, 2, 1]

    def test_aborted_messages_leave_the_backlog(self, busy: Store) -> None:
        """When the open transaction is aborted, its messages are counted no more and what waited is visible."""
        busy.admin.transactions.abort_transaction("0:2")
        assert split(busy, "E")[:3] == [6, 0, 0]

    def test_delivery_counters(self, busy: Store) -> None:
        """What was handed out, and how much of it again."""
        consumer = busy.subscribe("t", "E")
        for message in consumer.receive_batch(9, timeout=0):
            consumer.negative_acknowledge(message, delay=0)
        consumer.receive_batch(9, timeout=0)
        stats = row_json(busy.reports.subscription_stats("t", "E"))
        assert (stats["msgOutCounter"], stats["msgRedeliverCounter"]) == (4, 2)

    def test_an_acknowledged_range_across_max_read(self, store: Store) -> None:
        """At READ_UNCOMMITTED acknowledged up to an open transaction: dispatch at READ_COMMITTED passes the range."""
        producer = store.create_producer("t")
        for value in (b"0", b"1"):
            producer.send(value)
        producer.send(b"open", txn=store.begin_transaction())
        level, admin = IsolationLevel.READ_UNCOMMITTED, store.admin.subscriptions
        with store.subscribe(
            "t", "s", initial_position=EARLIEST, subscription_isolation_level=level
        ) as consumer:
            consumer.acknowledge(list(consumer.receive_batch(9, timeout=0))[1:])
        admin.update_subscription("t", "s", subscription_isolation_level=IsolationLevel.READ_COMMITTED)
        for _ in range(2):
            assert split(store, "s") == [1, 0, 0, 0, 0]
            assert store.maintenance.verify_store() == []
            store.subscribe("t", "s").receive_batch(9, timeout=0)
            admin.evict_consumers("t", "s")
