"""Spark and a compacted topic: `txnctl/spark/source/compacted_range.py`, as partitions and in a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import Store
from storage.errors import InvalidValue
from tests.txnctl.spark.micro_batches import Query
from tests.txnctl.spark.source.topic_range_steps import ranges, rows
from txnctl.spark import options
from txnctl.spark.source.compacted_range import CompactedRange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def send(store: Store, *pairs: tuple[str | None, str | None]) -> None:
    """Send messages of key and value, in one entry."""
    with store.create_producer("t", connected=False) as producer:
        values = [None if value is None else value.encode() for _, value in pairs]
        producer.send_batch(values, keys=[key for key, _ in pairs])


def compacted(store: Store) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of each message that the engine's reader of the compacted topic has."""
    return [(message.key, message.value) for message in store.reader("t", read_compacted=True)]


def pairs(path: str, **given: str) -> list[tuple[Any, Any]]:
    found = rows(ranges(path, readCompacted="true", **given), "key", "value")
    return [(row["key"], row["value"]) for row in found]


@pytest.fixture
def trimmed(store: Store) -> Store:
    """A topic that was compacted and trimmed, and has a tail."""
    store.create_topic("t", ledger_entries_max=2)
    store.admin.topics.set_retention("t", time_ms=0)
    send(store, ("a", "1"), ("b", "2"), ("a", "3"), (None, "plain"))
    send(store, ("c", "4"), ("b", None))
    store.admin.topics.compact_topic("t")
    store.admin.topics.trim_topic("t")
    send(store, ("a", "5"), ("d", "6"))
    return store


def test_a_batch_reads_the_view_and_the_tail_as_the_engine_does(trimmed: Store, path: str) -> None:
    """At original positions, also where the log was trimmed; the tail is cut into ranges of its own."""
    assert pairs(path) == compacted(trimmed)
    found = rows(ranges(path, readCompacted="true"), "ledgerId", "entryId", "batchIndex", "value")
    ids = [(row["ledgerId"], row["entryId"], row["batchIndex"]) for row in found]
    assert ids == [tuple(message.message_id) for message in trimmed.reader("t", read_compacted=True)]
    parts = ranges(path, readCompacted="true")
    assert [isinstance(part, CompactedRange) for part in parts] == [True, False]


def test_a_key_that_is_compacted_after_the_planning_is_not_missing(trimmed: Store, path: str) -> None:
    """Its older message left the view: the task reads the newer one, from behind the planned end."""
    parts = ranges(path, readCompacted="true")
    send(trimmed, ("c", "newer"))
    trimmed.admin.topics.compact_topic("t")
    found = [(row["key"], row["value"]) for row in rows(parts, "key", "value")]
    assert dict(found)[b"c"] == b"newer"
    assert len({key for key, _ in found}) == len(compacted(trimmed))


def test_positions_inside_the_view_bound_a_batch(trimmed: Store, path: str) -> None:
    """A start in the view, before the log; an end there, behind which nothing is read."""
    assert pairs(path, startingPosition="1:0:3") == compacted(trimmed)[1:]
    assert pairs(path, endingPosition="1:1") == [(b"a", b"3"), (None, b"plain")]
    assert pairs(path, endingPosition="1:0:3") == [(b"a", b"3")]
    assert pairs(path, startingPosition="latest") == []


def test_a_stream_reads_the_view_and_then_every_message(trimmed: Store, path: str) -> None:
    """In micro-batches, with compactions between them; the subscription's cursor follows."""
    expected = [value for _, value in compacted(trimmed)]
    query = Query(path, topics="t", subscription="s", readCompacted="true", startingPosition="earliest")
    query.run()
    assert query.values("t") == expected
    send(trimmed, ("a", "7"), ("a", "8"))
    query.run()
    trimmed.admin.topics.compact_topic("t")
    send(trimmed, ("a", "9"))
    query.run()
    assert query.values("t") == [*expected, b"7", b"8", b"9"]
    assert trimmed.reports.subscription_stats("t", "s").row.stats.msg_backlog == 0


@pytest.mark.parametrize("other", [{"isolationLevel": "READ_UNCOMMITTED"}, {"offloadPath": "/tmp"}])
def test_what_has_no_compacted_view_is_refused(other: dict[str, str]) -> None:
    """The view has committed messages alone, and offloaded files have the log alone."""
    with pytest.raises(InvalidValue):
        options.topic_read({"path": "x", "topic": "t", "readCompacted": "true", **other})


def test_a_session_reads_a_compacted_topic_in_a_batch_and_as_a_stream(
    spark: SparkSession, trimmed: Store, path: str, tmp_path: Path
) -> None:
    """spark.read and spark.readStream have what the engine's reader has."""
    expected = sorted((str(key), str(value)) for key, value in compacted(trimmed))
    reading = {"path": path, "topic": "t", "readCompacted": "true", "startingPosition": "earliest"}
    frame = spark.read.format("txnctl").options(**reading).load()
    found = [(row.key, row.value) for row in frame.select("key", "value").collect()]
    assert sorted((str(_bytes(key)), str(_bytes(value))) for key, value in found) == expected
    stream = spark.readStream.format("txnctl").options(**reading).option("subscription", "s").load()
    query = (
        stream.selectExpr("key", "value").writeStream.format("memory").queryName("compacted")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(120)
    streamed = spark.table("compacted").collect()
    assert sorted((str(_bytes(row.key)), str(_bytes(row.value))) for row in streamed) == expected


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
