"""A store with a part of everything, for copies: what is under way in it, and what has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from storage import EARLIEST, Store, SubscriptionType
from storage.disk import schema
from storage.disk.sealed_records import scan
from storage.engine import Engine
from tests.format.small_store import build

Records = dict[tuple[str, bytes], bytes]


def build_rich(path: Path) -> None:
    """The small store, with compaction, delayed messages, more types of subscription, and entries of all sizes."""
    build(path)
    with Store.open(path) as store:
        store.create_topic("sizes", ledger_entries_max=50)
        producer = store.create_producer("sizes")
        for number in range(120):
            producer.send(bytes([number]) * (number * number), key=str(number % 7))
        producer.send_batch([b"many"] * 2000)
        producer.send(bytes(1_000_000))
        producer.send(b"later", deliver_after=3600)
        store.admin.topics.compact_topic("sizes")
        for kind in SubscriptionType:
            with store.subscribe(
                "sizes", kind.name, subscription_type=kind, initial_position=EARLIEST
            ) as consumer:
                messages = consumer.receive_batch(20, timeout=0)
                consumer.acknowledge(messages[3])
        producer.close()
        table = store.table("accounts")
        for number in range(300):
            table.put(b"row %d" % number, b"first")
        with store.transaction() as txn:
            for number in range(0, 300, 3):
                table.put(b"row %d" % number, b"second", txn=txn)
        opened = store.begin_transaction()
        table.put(b"row 1", b"open", txn=opened)


def records_of(name: str | Path) -> Records:
    """All sealed records of a store by database and key, but for those that each store has of its own."""
    with Engine.open(str(name), read_only=True) as engine, engine.connection.environment.copy_view() as view:
        return {(each.name, key): value for each in schema.ALL for key, value in scan(view, each)}


def differing(before: Records, after: Records) -> Iterator[str]:
    """The databases in which two stores differ."""
    for name in sorted({database for database, _ in {*before, *after}}):
        keys = {key for database, key in {*before, *after} if database == name}
        if any(before.get((name, key)) != after.get((name, key)) for key in keys):
            yield name
