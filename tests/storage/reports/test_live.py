"""The facts of a live screen, and rates."""

from __future__ import annotations

from storage import EARLIEST, Store
from storage.reports.live import LiveCounters, rates_between

EMPTY = LiveCounters(0, 0, 0, {}, {}, {})


def test_differences_of_counters_are_rates() -> None:
    """By object; a new object, and one created anew, count from 0."""
    before = EMPTY._replace(commits=5, messages_in={"a": 10, "anew": 50}, messages_out={("a", "s"): 4})
    now = LiveCounters(
        2_000_000_000, 25, 3, {"a": 30, "anew": 6, "new": 8}, {("a", "s"): 4}, {"a": 1, "anew": 0, "new": 0}
    )
    rates = rates_between(before, now)
    assert rates is not None
    assert (rates.commits, rates.conflicts) == (10, 1.5)
    assert rates.messages_in == {"a": 10, "anew": 3, "new": 4}
    assert rates.messages_out == {("a", "s"): 0}
    assert rates.aborts == {"a": 0.5, "anew": 0, "new": 0}
    assert rates_between(now, now) is None


def test_the_counters_are_those_of_the_store(store: Store) -> None:
    """Appended, delivered and aborted since the look before; no view is open afterwards, and nothing was written."""
    store.create_topic("orders")
    before = store.reports.live_facts()
    consumer = store.subscribe("orders", "billing", initial_position=EARLIEST)
    producer = store.create_producer("orders")
    producer.send_batch([b"1", b"2", b"3"])
    assert consumer.receive(timeout=5) is not None
    txn = store.begin_transaction()
    producer.send(b"half", txn=txn)
    store.admin.transactions.abort_transaction(txn)
    begun = [store.begin_transaction() for _ in range(3)]
    for one in begun:
        producer.send(b"open", txn=one)
    now = store.reports.live_facts(transactions_max=2)
    topic = next(topic for topic in now.overview.facts.topics if topic.name == "orders")
    name = topic.topic
    assert now.counters.messages_in[name] - before.counters.messages_in[name] == topic.msg_count
    assert now.counters.messages_out[name, "billing"] == 3
    assert len(now.transactions) == 2
    assert now.overview.facts.transactions.open == 3
    again = store.reports.live_facts()
    assert again.counters._replace(at_ns=0) == now.counters._replace(at_ns=0)
    for one in begun:
        store.admin.transactions.abort_transaction(one)
    assert store.reports.live_facts().counters.aborts[name] >= 3
