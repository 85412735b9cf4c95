"""A partition of a topic: the messages between two positions as Arrow batches, the same each time."""

from __future__ import annotations

import pickle
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from storage import Message, Store
from storage.errors import InvalidValue, StoreInvalid, StoreNotFound, TopicNotFound
from tests.model_runs import examples
from tests.txnctl.spark.asked import of_messages
from txnctl.spark import options
from txnctl.spark.source.message_columns import ROWS_MAX
from txnctl.spark.source.topic_range import TopicRange
from txnctl.spark.source.topic_reader import plan_partitions

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ranges(path: str, **given_options: str) -> list[TopicRange]:
    named = (
        given_options if {"topics", "topicsPattern"} & set(given_options) else {"topic": "t", **given_options}
    )
    return plan_partitions(options.topic_read({"path": path, **named}))


def rows(parts: list[TopicRange], *columns: str) -> list[dict[str, Any]]:
    schema = of_messages(*columns)
    carried = pickle.loads(pickle.dumps(parts))
    return [row for part in carried for batch in part.batches(schema) for row in batch.to_pylist()]


def values(parts: list[TopicRange]) -> list[bytes | None]:
    return [row["value"] for row in rows(parts, "value")]


def as_row(message: Message) -> dict[str, Any]:
    """What a message is as a row, taken from the engine's own reader."""
    ledger_id, entry_id, batch_index = message.message_id
    time = message.event_time
    return {
        "key": message.key, "value": message.value, "topic": message.topic, "ledgerId": ledger_id,
        "entryId": entry_id, "batchIndex": batch_index,
        "publishTime": EPOCH + timedelta(milliseconds=message.publish_time),
        "eventTime": None if time is None else EPOCH + timedelta(milliseconds=time),
        "properties": list(message.properties.items()),
        "txnId": None if message.txn_id is None else str(message.txn_id),
        "txnState": None if message.txn_state is None else message.txn_state.value,
    }  # fmt: skip


def write(store: Store, seed: int, batches: int) -> None:
    """Batches of random messages, plain, committed, aborted and open."""
    chance, producer = random.Random(seed), store.create_producer("t")
    txns = [store.begin_transaction() for _ in range(4)]
    for _ in range(batches):
        count = chance.choice([1, 1, 2, 5])
        producer.send_batch(
            [chance.choice([b"", b"value", bytes([255, 0]), None]) for _ in range(count)],
            keys=chance.choice([None, [chance.choice([b"k", b"", None]) for _ in range(count)]]),
            properties=chance.choice([None, [chance.choice([{"a": "1", "b": ""}, {}, None]) for _ in range(count)]]),
            event_times=chance.choice([None, [chance.choice([0, 1_700_000_000_123, None]) for _ in range(count)]]),
            txn=chance.choice([None, None, *txns]),
        )  # fmt: skip
    store.commit_transaction(txns[0])
    store.admin.transactions.abort_transaction(txns[1])


@given(seed=st.integers(0, 1 << 30), batches=st.integers(1, 25), parts=st.integers(1, 5))
@settings(max_examples=examples(8))
@pytest.mark.parametrize("level", ["READ_COMMITTED", "READ_UNCOMMITTED"])
def test_a_read_gives_what_the_reader_of_the_engine_gives(
    tmp_path_factory: pytest.TempPathFactory, level: str, seed: int, batches: int, parts: int
) -> None:
    """Every column of every message, at both levels, however it is cut."""
    path = str(tmp_path_factory.mktemp("range") / "store")
    Store.create(path)
    with Store.open(path) as store:
        store.create_topic("t", ledger_entries_max=4)
        write(store, seed, batches)
        expected = [as_row(message) for message in store.reader("t", isolation_level=level)]  # type: ignore[arg-type]
    assert rows(ranges(path, isolationLevel=level, minPartitions=str(parts))) == expected


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


def test_times_are_those_of_publication(store: Store, path: str) -> None:
    """From the first message published at or after the one, up to the first at or after the other."""
    store.create_topic("t")
    producer = store.create_producer("t")
    for value in (b"1", b"2", b"3"):
        producer.send(value)
        before = store.connection.clock.wall_ms()
        while store.connection.clock.wall_ms() == before:
            store.connection.clock.sleep(0.001)
    times = [message.publish_time for message in store.reader("t")]
    assert values(ranges(path, startingTimestamp=str(times[1]))) == [b"2", b"3"]
    assert values(ranges(path, startingTimestamp=str(times[1]), endingTimestamp=str(times[2]))) == [b"2"]
    assert values(ranges(path, endingTimestamp="0")) == []


def test_several_topics_are_read_as_of_one_moment(store: Store, path: str) -> None:
    """Each message names its topic."""
    for name in ("orders", "payments", "other"):
        store.create_topic(name)
        store.create_producer(name).send(name.encode())
    found = rows(ranges(path, topics="orders,payments"), "topic", "value")
    assert found == [{"topic": "orders", "value": b"orders"}, {"topic": "payments", "value": b"payments"}]
    assert values(ranges(path, topicsPattern="o.*")) == [b"orders", b"other"]


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


def test_an_event_time_beyond_what_spark_can_hold_is_null(store: Store, path: str) -> None:
    """Spark counts microseconds in 64 bits; the engine milliseconds."""
    store.create_topic("t")
    store.create_producer("t").send_batch([b"1", b"2"], event_times=[(1 << 63) - 1, 0])
    assert [row["eventTime"] for row in rows(ranges(path), "eventTime")] == [None, EPOCH]


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


def test_a_store_that_was_replaced_is_not_read_for_the_old_one(
    store: Store, path: str, tmp_path: Path
) -> None:
    """Positions of another incarnation mean nothing."""
    store.create_topic("t")
    store.create_producer("t").send(b"1")
    plan = ranges(path)
    store.maintenance.backup_store(str(tmp_path / "copy"))
    Store.restore(str(tmp_path / "copy"), str(tmp_path / "restored"))
    moved = [TopicRange(**{**vars(part), "local_store": type(part.local_store)(str(tmp_path / "restored"), part.local_store.identity)})
             for part in plan]  # fmt: skip
    with pytest.raises(StoreInvalid, match="was replaced"):
        values(moved)


def test_a_task_on_another_host_says_what_it_needs(store: Store, path: str) -> None:
    """The error names host and path, and the option that helps."""
    store.create_topic("t")
    store.create_producer("t").send(b"1")
    (part,) = ranges(path)
    elsewhere = TopicRange(
        **{**vars(part), "local_store": type(part.local_store)("/nowhere/store", part.local_store.identity)}
    )
    with pytest.raises(StoreNotFound, match=r"no store at /nowhere/store on host \S+") as error:
        values([elsewhere])
    assert "offloadPath" in (error.value.hint or "")
    assert "offloadPath" in "".join(error.value.__notes__)


def test_a_store_that_is_not_there_cannot_be_planned(tmp_path: Path) -> None:
    """And nothing is created."""
    with pytest.raises(StoreNotFound):
        ranges(str(tmp_path / "none"))
    assert list(tmp_path.iterdir()) == []
