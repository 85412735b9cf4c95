"""Stats: `storage/reports/stats.py`."""

from __future__ import annotations

import json

import pytest

from storage import Store
from storage.errors import SubscriptionNotFound, TopicNotFound
from tests.row_json import row_json
from tests.storage.records_read import records_read


class TestTopic:
    """`topics stats`."""

    def test_positions_and_counters(self, busy: Store) -> None:
        """maxReadPosition, ongoing and aborted transactions, what is readable and what waits."""
        stats = row_json(busy.reports.topic_stats("t"))
        assert (stats["maxReadPosition"], stats["lastConfirmedEntry"]) == ("1:2", "1:4")
        assert (stats["ongoingTxnCount"], stats["abortedTxnCount"]) == (1, 1)
        assert (stats["msgInCounter"], stats["markerCount"], stats["uncommittedMessages"]) == (11, 1, 2)
        assert (stats["readableMessages"], stats["skippedMessages"], stats["blockedMessages"]) == (2, 3, 4)

    def test_they_read_as_few_records_beside_many_open_transactions(self, store: Store) -> None:
        """The search for the oldest blocked message is bounded."""
        producer, reads = store.create_producer("t"), []
        for _ in range(2):
            for _ in range(40):
                producer.send(b"open", txn=store.begin_transaction())
            producer.send(b"blocked")
            with records_read() as counted:
                stats = store.reports.topic_stats("t")
            reads.append(counted.total)
        assert stats.readable.blocked_messages == 2  # type: ignore[attr-defined]
        assert reads[1] <= reads[0]

    def test_who_blocks_it(self, busy: Store) -> None:
        """The open transaction that comes first, since when, and whose it is."""
        blocked = row_json(busy.reports.topic_stats("t"))["blockedBy"]
        assert (blocked["txnId"], blocked["firstPosition"], blocked["ownerState"]) == (
            "0:2",
            "1:3",
            "detached",
        )
        assert blocked["ageMs"] == 90_000

    def test_segments_of_the_aborted_set(self, busy: Store) -> None:
        """Their range runs over message positions, their size is known."""
        (segment,) = row_json(busy.reports.topic_stats_internal("t"))["abortedSegments"]
        assert (segment["firstPosition"], segment["lastPosition"]) == ("1:1", "1:1")
        assert (segment["transactions"], segment["messages"]) == (1, 3)
        assert segment["bytes"] > 0

    def test_there_must_be_the_topic(self, store: Store) -> None:
        """And the subscription."""
        with pytest.raises(TopicNotFound):
            store.reports.topic_stats("u")
        with pytest.raises(SubscriptionNotFound):
            store.reports.subscription_stats("t", "a")


def test_every_report_is_ready_for_json(busy: Store) -> None:
    """Positions and ids are texts; nothing needs a special encoder."""
    busy.subscribe("t", "E").receive_batch(1, timeout=0)
    reports = [
        row_json(busy.reports.list_topics()), row_json(busy.reports.topic_stats("t")), row_json(busy.reports.topic_stats_internal("t")), row_json(busy.reports.list_subscriptions()),
        row_json(busy.reports.subscription_stats("t", "E")), list(row_json(busy.reports.topic_log("t"))), row_json(busy.reports.list_transactions()), row_json(busy.reports.list_transactions(ended=True)),
        row_json(busy.reports.show_transaction("0:2")), row_json(busy.reports.store_info()), row_json(busy.reports.list_locks()), row_json(busy.reports.list_readers()), row_json(busy.reports.list_databases()), row_json(busy.reports.list_audit_records()),
        row_json(busy.reports.list_pending_acknowledgements("t", "E")), row_json(busy.admin.transactions.abort_transaction("0:2", dry_run=True)),
    ]  # fmt: skip
    for report in reports:
        assert json.loads(json.dumps(report)) == report
