"""Delayed messages before dispatch has met them: `storage/reports/unmet_delays.py`."""

from __future__ import annotations

import pytest

from storage import EARLIEST, OnOpen, Store, SubscriptionType
from storage.process.clock import ManualClock
from tests.storage.walk_steps import EXCLUSIVE, KEY_SHARED, RC, RU, SHARED, Attach, values

CLASSES = ("visible", "blocked", "delayed", "uncommitted", "pending")


def classes(store: Store) -> dict[str, int]:
    """The classes of the backlog of subscription `a` that have messages, as verify counts them too."""
    (row,) = [row for row in store.reports.list_subscriptions("t") if row.subscription == "a"]
    assert store.maintenance.verify_store(full=True) == []
    counts = {name: getattr(row.stats, name) for name in CLASSES}
    return {name: number for name, number in counts.items() if number}


@pytest.mark.parametrize("type_", [SHARED, KEY_SHARED])
def test_a_message_is_delayed_from_its_send_on(
    store: Store, clock: ManualClock, type_: SubscriptionType
) -> None:
    """Without a consumer, until its time."""
    store.admin.subscriptions.create_subscription(
        "t", "a", subscription_type=type_, initial_position=EARLIEST
    )
    producer = store.create_producer("t")
    producer.send_batch([b"1", b"2", b"3"], deliver_after=[5, None, 9])
    assert classes(store) == {"visible": 1, "delayed": 2}
    clock.advance(5)
    assert classes(store) == {"visible": 2, "delayed": 1}
    clock.advance(4)
    assert classes(store) == {"visible": 3}


def test_a_type_that_delivers_in_order_delays_nothing(store: Store) -> None:
    """Its consumer could read all of it now."""
    store.admin.subscriptions.create_subscription("t", "a", initial_position=EARLIEST)
    store.create_producer("t").send(b"1", deliver_after=5)
    assert classes(store) == {"visible": 1}


def test_open_and_aborted_messages_have_their_class_first(store: Store) -> None:
    """At READ_COMMITTED; at READ_UNCOMMITTED the time alone counts."""
    for name, level in (("a", None), ("b", RU)):
        store.subscribe(
            "t", name, subscription_type=SHARED, subscription_isolation_level=level, initial_position=EARLIEST
        ).close()
    producer, opened, aborted = (
        store.create_producer("t"),
        store.begin_transaction(),
        store.begin_transaction(),
    )
    producer.send(b"0", deliver_after=5)
    producer.send(b"1", deliver_after=5, txn=aborted)
    store.admin.transactions.abort_transaction(aborted)
    producer.send(b"2", deliver_after=5, txn=opened)
    producer.send(b"3", deliver_after=5)
    assert classes(store) == {"delayed": 1, "uncommitted": 1, "blocked": 1}
    assert store.reports.subscription_stats("t", "b").row.stats.delayed == 4
    store.commit_transaction(opened)
    assert classes(store) == {"delayed": 3}


def test_what_was_delivered_or_acknowledged_is_not_delayed(store: Store, attach: Attach) -> None:
    """After a change of type dispatch begins anew, and the messages keep their fate."""
    consumer = attach(EXCLUSIVE)
    producer = store.create_producer("t")
    for _ in range(4):
        producer.send(b"x", deliver_after=50)
    consumer.receive(0)
    consumer.acknowledge(consumer.receive(0))
    consumer.close()
    store.admin.subscriptions.update_subscription(
        "t", "a", subscription_type=SHARED, subscription_isolation_level=RU
    )
    assert classes(store) == {"visible": 1, "delayed": 2}


def test_an_aborted_acknowledgement_waits_for_its_time_again(store: Store, attach: Attach) -> None:
    """From the abort on, before dispatch meets the message."""
    consumer = attach(SHARED)
    at = store.create_producer("t").send(b"x", deliver_after=50)
    assert values(consumer) == []
    txn = store.begin_transaction()
    store.admin.acknowledgements.acknowledge_messages("t", "a", [at], txn=txn)
    assert classes(store) == {"pending": 1}
    store.admin.transactions.abort_transaction(txn)
    assert classes(store) == {"delayed": 1}
    assert values(consumer) == []
    assert classes(store) == {"delayed": 1}


def test_a_skipped_transaction_leaves_delayed_messages(store: Store, attach: Attach) -> None:
    """From its commit on."""
    consumer = attach(SHARED, on_open=OnOpen.SKIP)
    producer, txn = store.create_producer("t"), store.begin_transaction()
    producer.send_batch([b"1", b"2"], deliver_after=[50, None], txn=txn)
    producer.send(b"3")
    assert values(consumer) == [b"3"]
    assert classes(store) == {"visible": 1, "uncommitted": 2}
    store.commit_transaction(txn)
    assert classes(store) == {"visible": 2, "delayed": 1}
    assert values(consumer) == [b"2"]
    assert classes(store) == {"visible": 2, "delayed": 1}


@pytest.mark.parametrize(
    ("end", "found"),
    [(None, {"uncommitted": 2}), ("commit", {"visible": 1, "delayed": 1}), ("abort", {})],
)
def test_a_message_handed_out_before_the_level_changed_is_of_one_class(
    store: Store, attach: Attach, end: str | None, found: dict[str, int]
) -> None:
    """A message given back untouched at READ_UNCOMMITTED, and passed over as open since, is uncommitted first."""
    producer, txn = store.create_producer("t"), store.begin_transaction()
    consumer = attach(EXCLUSIVE, subscription_isolation_level=RU)
    producer.send_batch([b"1", b"timed"], deliver_after=[None, 5], txn=txn)
    assert values(consumer, 1) == [b"1"]
    consumer.close()
    consumer = attach(SHARED, subscription_isolation_level=RC, on_open=OnOpen.SKIP)
    later = producer.send(b"later")
    assert values(consumer) == [b"later"]
    consumer.acknowledge(later)
    if end == "commit":
        store.commit_transaction(txn)
    elif end == "abort":
        store.admin.transactions.abort_transaction(txn)
    assert classes(store) == found
