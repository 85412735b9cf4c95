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


def test_messages_of_one_key_are_not_handed_on(store: Store, clock: ManualClock) -> None:
    """Where all that a consumer holds is of one key: which, how many, since when, and a look at the first of them."""
    consumer = store.subscribe(
        "t",
        "s",
        subscription_type=SubscriptionType.KEY_SHARED,
        initial_position=EARLIEST,
        receiver_queue_size=150,
    )
    producer = store.create_producer("t")
    producer.send_batch([b"m"] * 200, keys=["k7"] * 200)
    assert consumer.receive(timeout=0)
    clock.advance(61)
    overview = store_overview(store.engine)
    (row,) = overview.facts.quiet_consumers
    assert (row.messages, row.key, row.key_messages, str(row.first_message_id)) == (150, b"k7", 200, "1:0:0")
    (finding,) = [each for each in overview.findings if each.code == "consumer-quiet"]
    assert "holds 150 of the 200 messages of key k7 and has acknowledged none for 1m01s" in finding.what
    assert str(finding.action) == "store.reports.peek_key('t', subscription='s', key=b'k7')"
    assert "1:0:0, published 2023-11-14T22:13:20.000Z" in finding.why
    assert "acknowledge_messages('t', 's', '1:0:0')" in finding.why
    assert "max_redeliver_count='3'" in finding.why
    assert "evict_consumers" not in finding.why
    report = store.reports.store_report().overview
    assert [(each.key, each.key_messages) for each in report.facts.quiet_consumers] == [(None, 200)]


def test_messages_of_two_keys_may_be_handed_on(store: Store, clock: ManualClock) -> None:
    """The key in the way is unknown then, and the rest is free for others."""
    consumer = store.subscribe(
        "t", "s", subscription_type=SubscriptionType.KEY_SHARED, initial_position=EARLIEST
    )
    store.create_producer("t").send_batch([b"m"] * 3, keys=["k", None, "l"])
    assert consumer.receive(timeout=0)
    clock.advance(61)
    (finding,) = [row for row in store_overview(store.engine).findings if row.code == "consumer-quiet"]
    assert "holds 3 messages and has" in finding.what
    assert finding.action.call == "store.admin.subscriptions.evict_consumers"
