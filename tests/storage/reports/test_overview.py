"""Overview: `storage/reports/overview.py`."""

from __future__ import annotations

from storage import Store
from tests.row_json import row_json
from tests.storage.records_read import records_read

QUIET = 20


def test_a_quiet_topic_is_told_by_its_state(store: Store) -> None:
    """Of a topic without subscriptions and open transactions a few records are read, and neither entries nor ledgers."""
    with store.create_producer("t") as producer:
        producer.send(b"x")
    reads = []
    for some in (range(1), range(1, QUIET + 1)):
        for number in some:
            store.create_topic(f"quiet-{number}")
        with records_read() as counted:
            store.reports.store_overview()
        reads.append(counted)
    assert reads[1].by_database.get("entries", 0) == 0
    assert reads[1].by_database.get("ledgers", 0) == 0
    assert reads[1].total - reads[0].total <= 7 * QUIET


def test_a_quiet_topic_has_the_facts_of_its_timeline(store: Store) -> None:
    """A topic whose last transaction has ended is shown as its statistics show it."""
    producer = store.create_producer("t")
    store.admin.subscriptions.create_subscription("t", "a")
    txn = store.begin_transaction()
    producer.send_batch([b"1", b"2"], txn=txn)
    producer.send(b"3")
    for is_open in (True, False):
        stats = row_json(store.reports.topic_stats("t"))
        (topic,) = row_json(store.reports.store_overview())["topics"]
        names = ["msgCount", "maxReadPosition", "lastConfirmedEntry", "topicEpoch", "ongoingTxnCount",
                 "uncommittedMessages", "blockedMessages", "oldestBlockedMs"]  # fmt: skip
        assert [topic[name] for name in names] == [stats[name] for name in names]
        assert (topic["subscriptions"], topic["visible"]) == (1, 0 if is_open else 3)
        assert topic["blockedBy"] == (str(txn) if is_open else None)
        if is_open:
            store.commit_transaction(txn)
