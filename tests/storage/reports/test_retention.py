"""Retention in reports: `storage/reports/retention.py`, and the finding of topics that are held back."""

from __future__ import annotations

from storage import EARLIEST, Store
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
