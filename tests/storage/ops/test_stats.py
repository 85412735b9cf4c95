"""Reports: what they name, and that their numbers are right (semantics sections 4, 5 and 9)."""

from __future__ import annotations

import json

import pytest

from storage import EARLIEST, IsolationLevel, MessageId, Position, Store, SubscriptionType
from storage.errors import SubscriptionNotFound, TopicNotFound
from storage.limits import PAGE_BYTES
from storage.process.clock import ManualClock
from tests.row_json import row_json

RC, RU = IsolationLevel


@pytest.fixture
def busy(store: Store, clock: ManualClock) -> Store:
    """Topic `t`: 2 plain, 3 aborted, 2 of an open transaction, 4 behind it; subscriptions E, D and S."""
    producer = store.create_producer("t")
    producer.send_batch([b"0", b"1"])
    aborted = store.begin_transaction()
    producer.send_batch([b"x"] * 3, txn=aborted)
    store.admin.transactions.abort_transaction(aborted)
    producer.send_batch([b"open"] * 2, txn=store.begin_transaction(labels={"job": "7"}))
    clock.advance(90)
    producer.send_batch([b"behind"] * 4)
    store.admin.subscriptions.create_subscription("t", "E", initial_position=EARLIEST)
    store.admin.subscriptions.create_subscription(
        "t",
        "D",
        initial_position=EARLIEST,
        subscription_isolation_level=RU,
        subscription_type=SubscriptionType.SHARED,
    )
    store.admin.subscriptions.create_subscription("t", "S", initial_position=EARLIEST)
    return store


def split(store: Store, name: str) -> list[int]:
    stats = row_json(store.reports.subscription_stats("t", name))
    return [stats[key] for key in ("visible", "blocked", "uncommitted", "pending", "abortedAhead")]


class TestTopic:
    """`topics stats`."""

    def test_positions_and_counters(self, busy: Store) -> None:
        """maxReadPosition, ongoing and aborted transactions, what is readable and what waits."""
        stats = row_json(busy.reports.topic_stats("t"))
        assert (stats["maxReadPosition"], stats["lastConfirmedEntry"]) == ("1:2", "1:4")
        assert (stats["ongoingTxnCount"], stats["abortedTxnCount"]) == (1, 1)
        assert (stats["msgInCounter"], stats["markerCount"], stats["uncommittedMessages"]) == (11, 1, 2)
        assert (stats["readableMessages"], stats["skippedMessages"], stats["blockedMessages"]) == (2, 3, 4)

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


class TestSubscriptions:
    """`subscriptionIsolationLevel` and the split backlog, with and without a consumer."""

    def test_level_and_split_of_each(self, busy: Store) -> None:
        """At READ_COMMITTED the backlog is split; at READ_UNCOMMITTED everything stored is visible."""
        stats = row_json(busy.reports.topic_stats("t"))["subscriptions"]
        assert {name: each["subscriptionIsolationLevel"] for name, each in stats.items()} == {
            "D": "READ_UNCOMMITTED", "E": "READ_COMMITTED", "S": "READ_COMMITTED",
        }  # fmt: skip
        assert split(busy, "E") == [2, 4, 2, 0, 3]
        assert split(busy, "D") == [11, 0, 0, 0, 0]
        assert (stats["E"]["msgBacklog"], stats["D"]["msgBacklog"]) == (8, 11)

    def test_in_flight_is_part_of_visible(self, busy: Store) -> None:
        """And pending is a class of its own."""
        consumer = busy.subscribe("t", "E")
        messages = consumer.receive_batch(9, timeout=0)
        assert split(busy, "E")[:4] == [2, 4, 2, 0]
        assert row_json(busy.reports.subscription_stats("t", "E"))["unackedMessages"] == 2
        consumer.acknowledge(messages[0], txn=busy.begin_transaction())
        assert split(busy, "E")[:4] == [1, 4, 2, 1]

    def test_aborted_messages_leave_the_backlog(self, busy: Store) -> None:
        """When the open transaction is aborted, its messages are counted no more and what waited is visible."""
        busy.admin.transactions.abort_transaction("0:2")
        assert split(busy, "E")[:3] == [6, 0, 0]

    def test_delivery_counters(self, busy: Store) -> None:
        """What was handed out, and how much of it again."""
        consumer = busy.subscribe("t", "E")
        for message in consumer.receive_batch(9, timeout=0):
            consumer.negative_acknowledge(message, delay=0)
        consumer.receive_batch(9, timeout=0)
        stats = row_json(busy.reports.subscription_stats("t", "E"))
        assert (stats["msgOutCounter"], stats["msgRedeliverCounter"]) == (4, 2)


class TestBrowsing:
    """Looking without consuming."""

    def test_peek_shows_what_comes_next(self, busy: Store) -> None:
        """Without handing it out: neither acknowledged nor pending messages, as far as the level reads."""
        assert [message.value for message in busy.reports.peek_messages("t", "E", 9)] == [b"0", b"1"]
        assert len(busy.reports.peek_messages("t", "D", 9)) == 9
        consumer = busy.subscribe("t", "D")
        first, second, *_ = consumer.receive_batch(9, timeout=0)
        consumer.acknowledge(first)
        consumer.acknowledge(second, txn=busy.begin_transaction())
        assert len(busy.reports.peek_messages("t", "D", 99)) == 9
        assert row_json(busy.reports.subscription_stats("t", "E"))["unackedMessages"] == 0

    def test_peek_leaves_out_what_a_cumulative_acknowledgement_holds(self, busy: Store) -> None:
        """Pending messages go to nobody, so none of them comes next."""
        consumer = busy.subscribe("t", "E")
        consumer.acknowledge_cumulative(MessageId(1, 0, 0), txn=busy.begin_transaction())
        assert [message.value for message in busy.reports.peek_messages("t", "E", 9)] == [b"1"]

    def test_a_log_whose_topic_is_deleted_ends_in_words(self, store: Store) -> None:
        """Its entries are gone by then: nothing is damaged, and no backup is to be restored."""
        with store.create_producer("t") as producer:
            for _ in range(3):
                producer.send(b"x" * PAGE_BYTES)
        rows = store.reports.topic_log("t")
        assert str(next(rows).position) == "1:0"
        store.admin.topics.delete_topic("t")
        with pytest.raises(TopicNotFound):
            list(rows)

    def test_the_log_shows_markers_and_states(self, busy: Store) -> None:
        """Every entry in order, from anywhere, as many as wanted."""
        rows = list(row_json(busy.reports.topic_log("t")))
        assert [(row["position"], row["kind"], row["messages"], row["txnState"]) for row in rows] == [
            ("1:0", "messages", 2, None), ("1:1", "messages", 3, "ABORTED"), ("1:2", "abort", 0, "ABORTED"),
            ("1:3", "messages", 2, "OPEN"), ("1:4", "messages", 4, None),
        ]  # fmt: skip
        assert [
            row["position"] for row in row_json(busy.reports.topic_log("t", Position(1, 2), limit=2))
        ] == [
            "1:2",
            "1:3",
        ]

    @pytest.mark.parametrize(("level", "expected"), [(RC, MessageId(1, 0, 1)), (RU, MessageId(1, 4, 3))])
    def test_the_last_message_is_the_last_visible_one(
        self, busy: Store, level: IsolationLevel, expected: MessageId
    ) -> None:
        """Largest at or below the bound, neither marker nor aborted."""
        assert busy.reports.last_message_id("t", level) == expected


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
