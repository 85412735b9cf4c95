"""Browse: `storage/reports/browse.py`."""

from __future__ import annotations

import pytest

from storage import IsolationLevel, MessageId, Position, Store
from storage.errors import TopicNotFound
from storage.limits import PAGE_BYTES
from tests.row_json import row_json
from tests.storage.reports.stats_steps import RC, RU


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
