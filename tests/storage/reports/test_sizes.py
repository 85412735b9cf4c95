"""Sizes of topics and tables: `storage/reports/sizes.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store
from storage.disk import schema
from storage.disk.codec import key1
from storage.reports import sizes
from storage.subscription import catalogue as subscriptions
from storage.topic import catalogue as topics


def test_a_size_is_that_of_the_records(store: Store) -> None:
    """Entries as the log has them, and every other record of the topic and its subscriptions, by a recount."""
    store.create_topic("orders")
    store.admin.subscriptions.create_subscription("orders", "billing", initial_position=EARLIEST)
    producer = store.create_producer("orders")
    producer.send_batch([b"x" * 1000] * 20)
    producer.send(b"half", txn=store.begin_transaction())
    with store.subscribe("orders", "billing") as consumer:
        consumer.acknowledge(consumer.receive_batch(9, timeout=0)[3:])
        row = store.reports.list_sizes()[0]
        with store.connection.view() as view:
            topic_id = topics.get(view, "orders").topic_id
            entries = sum(len(value) for _, value in view.scan(schema.ENTRIES, key1(topic_id)))
            (member,) = subscriptions.every(view, topic_id)
            prefixes = [(database, topic_id) for database in (schema.SUBSCRIPTIONS, schema.OPEN_FIRST)]
            prefixes += [
                (database, member.subscription_id) for database in (schema.DELIVERIES, schema.CURSORS)
            ]
            other = [
                sum(len(key) + len(value) + 4 for key, value in view.scan(database, key1(number)))
                for database, number in prefixes
            ]
    assert (row.kind, row.name, row.content_bytes, row.is_exact) == ("topic", "orders", entries, True)
    assert min(other) > 0
    assert row.other_bytes >= sum(other)
    assert row.size_bytes == row.content_bytes + row.other_bytes


def test_the_largest_come_first(store: Store) -> None:
    """Topics and tables in one list, at most as many as asked for."""
    for name, number in (("few", 10), ("many", 400)):
        store.create_topic(name)
        store.create_producer(name).send_batch([b"x" * 100] * number)
    store.create_table("rows")
    for number in range(100):
        store.table("rows").put(b"%d" % number, b"x" * 100)
    assert [row.name for row in store.reports.list_sizes()] == ["many", "rows", "few", "t"]
    assert [row.name for row in store.reports.list_sizes(1)] == ["many"]


def test_the_walk_has_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound a table is estimated by the mean of the rows, a topic has a lower bound; without a read, by pages."""
    store.create_table("rows")
    for number in range(200):
        store.table("rows").put(b"%04d" % number, b"x" * 100)
    store.create_topic("orders")
    for number in range(30):
        store.admin.subscriptions.create_subscription("orders", f"s{number:02}")
    whole = {row.name: row for row in store.reports.list_sizes()}
    monkeypatch.setattr(sizes, "RECORDS_MAX", 20)
    bounded = {row.name: row for row in store.reports.list_sizes()}
    assert {row.is_exact for row in whole.values()} == {True}
    assert [bounded[name].is_exact for name in ("rows", "orders")] == [False, False]
    assert bounded["rows"].content_bytes == pytest.approx(whole["rows"].content_bytes, rel=0.02)
    assert 0 < bounded["orders"].other_bytes < whole["orders"].other_bytes
    monkeypatch.setattr(sizes, "ALL_RECORDS_MAX", 0)
    unread = {row.name: row for row in store.reports.list_sizes()}
    assert unread["orders"].other_bytes == 0
    assert unread["rows"].content_bytes > 200 * 100
