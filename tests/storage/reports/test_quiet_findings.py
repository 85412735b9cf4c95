"""Findings about quiet consumers: one for each cause."""

from __future__ import annotations

from storage import EARLIEST, Store, SubscriptionType
from storage.process.clock import ManualClock
from storage.reports.overview import store_overview


def test_consumers_of_one_subscription_and_of_one_process_are_one_finding(
    store: Store, clock: ManualClock
) -> None:
    """On two topics; the longest comes first, and each is a row of its own."""
    shared = SubscriptionType.SHARED
    for topic in ("a", "b"):
        store.create_topic(topic)
        for number in range(2):
            consumer = store.subscribe(
                topic, "s", subscription_type=shared, initial_position=EARLIEST, receiver_queue_size=1,
                consumer_name=f"{topic}{number}",
            )  # fmt: skip
            store.create_producer(topic).send(b"m")
            assert consumer.receive(timeout=0)
            clock.advance(10)
    clock.advance(60)
    overview = store_overview(store.engine)
    assert [row.consumer_name for row in overview.facts.quiet_consumers] == ["a0", "a1", "b0", "b1"]
    (finding,) = [row for row in overview.findings if row.code == "consumer-quiet"]
    assert finding.what.count("has acknowledged none") == 3
    assert finding.what.endswith("; and 1 more consumer like it")
