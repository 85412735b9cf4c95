"""A partition of a topic: the messages between two positions as Arrow batches, the same each time."""

from __future__ import annotations

import pytest

from storage import Position, Store
from storage.errors import InvalidValue, MessageNotFound, TopicNotFound
from storage.topic import log
from tests.txnctl.spark.asked import of_messages
from tests.txnctl.spark.source.topic_range_steps import ranges, rows, values
from txnctl.spark.source import message_columns
from txnctl.spark.source.message_columns import ROWS_MAX


def test_a_range_may_begin_and_end_inside_a_batch(store: Store, path: str) -> None:
    """The first message is read, the last one is not."""
    store.create_topic("t")
    producer = store.create_producer("t")
    producer.send_batch([b"%d" % number for number in range(5)])
    producer.send_batch([b"%d" % number for number in range(5, 10)])
    assert values(ranges(path, startingPosition="1:0:3", endingPosition="1:1:2")) == [b"3", b"4", b"5", b"6"]
    assert values(ranges(path, startingPosition="1:0:1", endingPosition="1:0:3")) == [b"1", b"2"]
    assert values(ranges(path, startingPosition="1:0:2", endingPosition="1:0:2")) == []


def test_what_a_plan_reads_does_not_change(store: Store, path: str) -> None:
    """Messages that come later, and what becomes of open transactions, are not in it: a retried task gives the same."""
    store.create_topic("t")
    producer = store.create_producer("t")
    producer.send(b"1")
    txns = [store.begin_transaction(), store.begin_transaction()]
    for txn in txns:
        producer.send(b"open", txn=txn)
    plans = [ranges(path, isolationLevel=level) for level in ("READ_COMMITTED", "READ_UNCOMMITTED")]
    first = [rows(plan) for plan in plans]
    store.commit_transaction(txns[0])
    store.admin.transactions.abort_transaction(txns[1])
    producer.send(b"2")
    assert [rows(plan) for plan in plans] == first
    assert [row["value"] for row in first[0]] == [b"1"]
    assert [row["txnState"] for row in first[1]] == [None, "OPEN", "OPEN"]
    assert values(ranges(path)) == [b"1", b"open", b"2"]


def test_many_messages_come_in_bounded_batches_in_order(store: Store, path: str) -> None:
    """A batch of Arrow holds tens of thousands of messages, not all of them."""
    store.create_topic("t")
    producer = store.create_producer("t")
    count = ROWS_MAX + 5_000
    for start in range(0, count, 10_000):
        producer.send_batch([b"%d" % number for number in range(start, min(start + 10_000, count))])
    (part,) = ranges(path)
    batches = list(part.batches(of_messages("value string", "batchIndex")))
    assert len(batches) == 2
    assert [text for batch in batches for text in batch.column(0).to_pylist()] == [
        str(n) for n in range(count)
    ]
    assert all(batch.schema == of_messages("value string", "batchIndex") for batch in batches)


def test_a_value_that_is_no_text_is_an_error_that_says_where(store: Store, path: str) -> None:
    """If text was asked for; as binary it is read."""
    store.create_topic("t")
    store.create_producer("t").send(b"\xff\xfe")
    with pytest.raises(InvalidValue, match="a value among messages 1:0 to 1:0 is not UTF-8"):
        rows(ranges(path), "value string")
    assert values(ranges(path)) == [b"\xff\xfe"]


def test_a_task_does_not_leave_out_messages_that_were_trimmed_since_the_plan(store: Store, path: str) -> None:
    store.create_topic("t", ledger_entries_max=1)
    for value in (b"1", b"2"):
        store.create_producer("t").send(value)
    plan = ranges(path)
    store.admin.topics.truncate_topic("t")
    store.create_producer("t").send(b"3")
    with pytest.raises(
        MessageNotFound, match="after 1:-1 were trimmed, at most 2; the first one left is at 3:0"
    ):
        values(plan)
    assert values(ranges(path)) == [b"3"]


def test_a_task_may_leave_out_messages_that_were_trimmed(
    store: Store, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With failOnDataLoss false: trimmed before the task, and between two pages of the task."""
    store.create_topic("t", ledger_entries_max=1)
    for value in (b"1", b"2", b"3"):
        store.create_producer("t").send(value)
    store.admin.subscriptions.create_subscription("t", "s", initial_position=Position(2, 0))
    store.admin.topics.set_retention("t", time_ms=0)
    plan = ranges(path, failOnDataLoss="false")
    store.admin.topics.trim_topic("t")
    assert values(plan) == [b"2", b"3"]
    plan = ranges(path, failOnDataLoss="false", minPartitions="1")
    monkeypatch.setattr(log, "PAGE_ENTRIES", 1)
    (batches,) = [part.batches(of_messages("value")) for part in plan]
    monkeypatch.setattr(message_columns, "ROWS_MAX", 1)
    assert next(batches)["value"].to_pylist() == [b"2"]
    store.create_producer("t").send(b"4")
    store.admin.topics.truncate_topic("t")
    assert list(batches) == []


@pytest.mark.parametrize(
    ("start", "where"),
    [({"startingPosition": "1:0"}, "after 1:-1"), ({"startingTimestamp": "2020-01-01"}, "from 2020-01-01")],
)
def test_a_start_within_what_was_trimmed_is_no_other_start(
    store: Store, path: str, start: dict[str, str], where: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An error by default; the first message left and a warning with failOnDataLoss false; earliest asks for no more."""
    store.create_topic("t", ledger_entries_max=1)
    for value in (b"1", b"2"):
        store.create_producer("t").send(value)
    store.admin.topics.truncate_topic("t")
    store.create_producer("t").send(b"3")
    with pytest.raises(MessageNotFound, match=f"{where}.* were trimmed.*first one left is at 3:0") as refusal:
        ranges(path, **start)
    assert "failOnDataLoss" in str(refusal.value.hint)
    assert values(ranges(path, failOnDataLoss="false", **start)) == [b"3"]
    assert [record.levelname for record in caplog.records if record.name == "txnctl.spark"] == ["WARNING"]
    assert values(ranges(path, startingPosition="earliest")) == [b"3"]


def test_a_time_after_all_that_was_trimmed_lost_nothing(store: Store, path: str) -> None:
    """Also where the quiet ledger was closed by the trimming, long after its last message."""
    store.create_topic("t")
    store.create_producer("t").send(b"1")
    newest_ms = next(iter(store.reader("t"))).publish_time
    store.admin.topics.truncate_topic("t")
    assert ranges(path, startingTimestamp=str(newest_ms + 1)) == []
    with pytest.raises(MessageNotFound):
        ranges(path, startingTimestamp=str(newest_ms))


def test_a_topic_that_was_created_again_is_not_read_for_the_old_one(store: Store, path: str) -> None:
    """Planned on the old one, a task finds the new one, and says so."""
    store.create_topic("t")
    store.create_producer("t").send(b"1")
    plan = ranges(path)
    store.admin.topics.delete_topic("t", force=True)
    with pytest.raises(TopicNotFound, match="there is no topic"):
        values(plan)
    store.create_topic("t")
    store.create_producer("t").send(b"2")
    with pytest.raises(TopicNotFound, match="deleted and created again"):
        values(plan)
