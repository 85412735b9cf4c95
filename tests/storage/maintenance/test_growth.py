"""A store that lives for years: what comes and goes leaves nothing behind that grows.

Each round is eight days of ever-new names: producers, transactions that commit and abort, jobs with topics of their own,
subscriptions, dead letters, owners, keys that are put and deleted, processes. Then gc runs. The number of records in
every database, and the pages in use, are the same after later rounds.
"""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.disk import schema
from storage.errors import TxnctlError
from storage.process.clock import ManualClock

DAY_MS = 86_400_000
ROUNDS = 9
BOUNDED_BY_NUMBER = {"audit", "conflicts", "owners"}
"""Databases that keep so many records, whatever their age; tests of their own hold the numbers."""


def one_round(path: str, clock: ManualClock, number: int) -> None:
    """Eight days, in a process of its own as the store sees it."""
    with Store.open(path, clock=clock) as store:
        for job in range(6):
            name = f"{number}-{job}"
            _send(store, name)
            _transactions(store, name)
            _topic_of_its_own(store, name)
            _table(store, name)
            clock.advance(60)
        _letters(store)
        with store.create_producer("t", access_mode="Exclusive") as owner:
            owner.send(b"owned")
        clock.advance(8 * 86_400)
        store.maintenance.collect_garbage()
        # The outcome of a transaction goes a day after the end once its messages are gone.
        clock.advance(60)
        store.maintenance.collect_garbage()


def _send(store: Store, name: str) -> None:
    with store.create_producer("t", producer_name=name, connected=False) as producer:
        for number in range(0, 10, 2):
            producer.send(b"m" * 100, sequence_id=number)
    with store.subscribe("t", f"s-{name}", initial_position=EARLIEST) as consumer:
        for message in consumer.receive_batch(50, timeout=0):
            consumer.acknowledge(message)
    store.admin.subscriptions.delete_subscription("t", f"s-{name}")


def _transactions(store: Store, name: str) -> None:
    for ends in ("commit", "abort", "commit"):
        txn = store.begin_transaction()
        with store.create_producer("t", producer_name=f"txn-{name}-{ends}", connected=False) as producer:
            producer.send(b"in", txn=txn)
            producer.send(b"plain")
        store.table("accounts").put(b"balance", name.encode(), txn=txn)
        if ends == "commit":
            store.commit_transaction(txn)
        else:
            store.admin.transactions.abort_transaction(txn)


def _topic_of_its_own(store: Store, name: str) -> None:
    store.create_topic(f"job-{name}")
    with store.create_producer(f"job-{name}", access_mode="Exclusive") as producer:
        producer.send(b"m")
    store.admin.topics.set_retention(f"job-{name}", time_ms=DAY_MS)
    store.admin.topics.delete_topic(f"job-{name}")


def _table(store: Store, name: str) -> None:
    table = store.table("accounts")
    table.put(name.encode(), b"v" * 100)
    table.put(name.encode(), b"w" * 100)
    table.delete(name.encode())
    first, second = store.transaction(), store.transaction()
    try:
        for txn in (first, second):
            table.put(b"contended", name.encode(), txn=txn)
        first.commit()
        second.commit()
    except TxnctlError:
        first.abort()
        second.abort()


def _letters(store: Store) -> None:
    """Every message left of a subscription goes to its dead-letter topic."""
    with store.subscribe(
        "t",
        "poison",
        subscription_type=SubscriptionType.SHARED,
        initial_position=EARLIEST,
        max_redeliver_count=0,
    ) as consumer:
        while messages := consumer.receive_batch(99, timeout=0):
            for message in messages:
                consumer.negative_acknowledge(message, delay=0)


@pytest.mark.slow
def test_nothing_grows_with_what_is_gone(path: str, clock: ManualClock) -> None:
    with Store.open(path, clock=clock) as store:
        store.create_topic("t", ledger_entries_max=20)
        store.create_table("accounts")
        store.admin.settings.set_retention(time_ms=0)
        store.admin.settings.set_dead_letter_retention(time_ms=DAY_MS)
    sizes: list[dict[str, int]] = []
    for number in range(ROUNDS):
        one_round(path, clock, number)
        with Store.open(path, clock=clock) as store:
            with store.connection.view() as view:
                counts = {database.name: view.count(database) for database in schema.ALL}
            sizes.append({name: count for name, count in counts.items() if name not in BOUNDED_BY_NUMBER})
    grown = {name: [size[name] for size in sizes] for name in sizes[0] if sizes[-1][name] > sizes[5][name]}
    assert grown == {}
