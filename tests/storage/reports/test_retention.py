"""Retention in reports: `storage/reports/retention.py`, and the finding of topics that are held back."""

from __future__ import annotations

from storage import EARLIEST, Store
from storage.limits import FORGOTTEN_MS
from storage.process.clock import ManualClock


def findings_of(store: Store) -> list[tuple[str, str]]:
    """Code and text of each finding about retention."""
    return [
        (finding.about, finding.what)
        for finding in store.reports.store_overview().findings
        if finding.code == "retention-held"
    ]


def test_a_topic_past_its_retention_names_what_holds_it(store: Store, clock: ManualClock) -> None:
    """The slowest subscription, or the oldest open transaction; nothing where nothing is past the limits."""
    store.create_topic("slow", ledger_entries_max=1)
    store.admin.subscriptions.create_subscription("slow", "billing", initial_position=EARLIEST)
    store.admin.topics.set_retention("slow", time_ms=60_000)
    for value in (b"1", b"2"):
        store.create_producer("slow").send(value)
    assert findings_of(store) == []
    clock.advance(61)
    assert len(store.reports.store_overview().facts.retention_held) == 1
    assert findings_of(store) == [], "a consumer at work is always a little behind"
    clock.advance(3600)
    size = store.reports.topic_stats("slow").counts.storage_size
    text = f"topic slow keeps 2 messages past its retention ({size:,} bytes): subscription billing holds them back"
    assert findings_of(store) == [("topic slow", text)]
    store.admin.subscriptions.clear_backlog("slow", "billing")
    assert findings_of(store) == []


def test_an_open_transaction_that_holds_a_topic_is_named(store: Store, clock: ManualClock) -> None:
    store.create_topic("held", ledger_entries_max=1)
    txn = store.begin_transaction(timeout=10_000)
    store.create_producer("held").send(b"1", txn=txn)
    clock.advance(3600)
    assert findings_of(store) == []
    store.admin.topics.set_retention("held", time_ms=0)
    ((about, what),) = findings_of(store)
    assert (about, f"transaction {txn} holds them back" in what) == ("topic held", True)
    retention = store.reports.topic_retention("held")
    assert retention.held_by is not None
    assert (retention.held_by.kind, retention.held_by.name) == ("transaction", str(txn))
    store.commit_transaction(txn)
    assert findings_of(store) == []


def forgotten(store: Store) -> list[tuple[str, str, str]]:
    """What, why and command of each finding about a forgotten subscription."""
    return [
        (finding.what, finding.why, str(finding.action))
        for finding in store.reports.store_overview().findings
        if finding.code == "subscription-forgotten"
    ]


def test_a_forgotten_subscription_is_named_with_the_command_that_frees_it(
    store: Store, clock: ManualClock
) -> None:
    """A week after its last consumer left, if it keeps messages; not while one is attached."""
    store.create_topic("orders")
    with store.subscribe("orders", "audit", initial_position=EARLIEST):
        store.create_producer("orders").send(b"1")
    clock.advance(FORGOTTEN_MS / 1000 - 1)
    assert forgotten(store) == []
    clock.advance(1)
    ((what, why, action),) = forgotten(store)
    assert what.startswith("nobody has read audit of topic orders since 20")
    assert "It keeps 1 message" in why
    assert action == "store.admin.subscriptions.delete_subscription('orders', 'audit')"
    shown = store.reports.topic_retention("orders")
    assert str(shown.lets_go_with) == action
    assert shown.held_without_consumer_since_at_ms is not None
    with store.subscribe("orders", "audit") as consumer:
        assert forgotten(store) == []
        assert store.reports.topic_retention("orders").lets_go_with is None
        consumer.acknowledge(consumer.receive(timeout=1))
    clock.advance(FORGOTTEN_MS / 1000)
    assert forgotten(store) == [], "it keeps nothing"


def test_a_subscription_waiting_for_a_transaction_is_not_the_hold(store: Store) -> None:
    """Its next message is pending in an open transaction, one by one or cumulatively."""
    store.create_topic("orders")
    store.create_producer("orders").send_batch([b"1", b"2"])
    for name in ("single", "cumulative"):
        txn = store.begin_transaction()
        with store.subscribe("orders", name, initial_position=EARLIEST) as consumer:
            first, second = consumer.receive(timeout=1), consumer.receive(timeout=1)
            if name == "cumulative":
                consumer.acknowledge_cumulative(second, txn=txn)
            else:
                consumer.acknowledge(first, txn=txn)
                hold = store.reports.topic_retention("orders").held_by
                assert hold is not None
                assert (hold.kind, hold.name) == ("subscription", name)
                consumer.acknowledge(second, txn=txn)
        shown = store.reports.topic_retention("orders")
        assert shown.held_by is not None
        assert (shown.held_by.kind, shown.held_by.name) == ("transaction", str(txn))
        assert str(shown.lets_go_with).startswith("store.admin.transactions.abort_transaction")
        store.commit_transaction(txn)
