"""spark.readStream.format("txnctl"): a query with a checkpoint, stopped and started again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from storage import Store
from tests.row_json import row_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.listener import StreamingQueryProgress


class Job:
    """A query from topics to JSON files, with a checkpoint."""

    def __init__(self, spark: SparkSession, path: str, place: Path) -> None:
        self.spark = spark
        self.path = path
        self.place = place

    def run(self, **options: str) -> StreamingQuery:
        """Read all that is available now."""
        reader = (
            self.spark.readStream.format("txnctl")
            .schema("value string, topic string")
            .option("path", self.path)
        )
        for name, value in options.items():
            reader = reader.option(name, value)
        writer = (
            reader.load()
            .writeStream.format("json")
            .option("checkpointLocation", str(self.place / "checkpoint"))
        )
        query = writer.option("path", str(self.place / "out")).trigger(availableNow=True).start()
        query.awaitTermination(60)
        return query

    def values(self) -> list[str]:
        """What arrived, sorted."""
        frame = self.spark.read.schema("value string").json(str(self.place / "out"))
        return sorted(row.value for row in frame.collect())


@pytest.fixture
def job(spark: SparkSession, path: str, tmp_path: Path) -> Job:
    """A query that did not run yet."""
    return Job(spark, path, tmp_path)


def send(store: Store, topic: str, *values: bytes) -> None:
    with store.create_producer(topic) as producer:
        for value in values:
            producer.send(value)


def _behind(progress: StreamingQueryProgress) -> int:
    """Messages that are left when a micro-batch is done."""
    latest = json.loads(progress.sources[0].latestOffset)
    return sum(each["behind"] for each in latest.values())


def test_a_query_goes_on_where_it_stopped_and_reads_everything_once(job: Job, store: Store) -> None:
    """From the latest message at its first start; with bounded batches, over two topics and several ledgers."""
    for topic in ("orders", "payments"):
        store.create_topic(topic, ledger_entries_max=2)
        send(store, topic, b"before")
    given = {"topics": "orders,payments", "subscription": "s", "maxMessagesPerTrigger": "4"}
    job.run(**given)
    send(store, "orders", b"1", b"2", b"3", b"4", b"5")
    txn = store.begin_transaction()
    with store.create_producer("payments") as producer:
        producer.send(b"held", txn=txn)
    send(store, "payments", b"6")
    query = job.run(**given)
    assert job.values() == ["1", "2", "3", "4", "5"]
    assert max(each.numInputRows for each in query.recentProgress) <= 4
    (source,) = query.recentProgress[-1].sources
    at = json.loads(source.endOffset)
    assert json.loads(source.latestOffset) == {
        topic: {"position": at[topic], "behind": 0} for topic in ("orders", "payments")
    }
    assert [_behind(each) for each in query.recentProgress] == [1, 0]
    store.commit_transaction(txn)
    job.run(**given)
    assert job.values() == ["1", "2", "3", "4", "5", "6", "held"]
    assert [
        row_json(store.reports.subscription_stats(topic, "s"))["msgBacklog"]
        for topic in ("orders", "payments")
    ] == [0, 0]


def test_a_topic_that_was_created_again_ends_the_query_with_an_error_of_the_tool(
    job: Job, store: Store
) -> None:
    """Not with other messages at the same place."""
    store.create_topic("orders")
    send(store, "orders", b"1")
    job.run(topic="orders", startingOffsets="earliest")
    store.admin.topics.delete_topic("orders", force=True)
    store.create_topic("orders")
    send(store, "orders", b"2")
    with pytest.raises(Exception, match="TopicNotFound: topic orders was deleted and created again"):
        job.run(topic="orders", startingOffsets="earliest")
    assert job.values() == ["1"]


def test_a_start_that_would_not_be_kept_is_refused(job: Job, store: Store) -> None:
    """A stream from the latest message needs a subscription."""
    store.create_topic("orders")
    with pytest.raises(Exception, match="needs a subscription"):
        job.run(topic="orders")


def test_a_stream_has_columns_and_keys_by_options(spark: SparkSession, store: Store, path: str) -> None:
    """As a batch read has; a wrong name lists the columns."""
    store.create_topic("keyed")
    with store.create_producer("keyed") as producer:
        producer.send_batch([b"1", b"2", b"3"], keys=["a", "b", "a"])
    stream = spark.readStream.format("txnctl").option("path", path).option("topic", "keyed")
    stream = stream.option("startingPosition", "earliest").option("keys", "a")
    frame = stream.option("columns", "value string, entryId").load()
    assert frame.dtypes == [("value", "string"), ("entryId", "bigint")]
    query = frame.writeStream.format("memory").queryName("keyed_rows").trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert [tuple(row) for row in spark.sql("SELECT * FROM keyed_rows").collect()] == [("1", 0), ("3", 0)]
    spark.catalog.dropTempView("keyed_rows")
    with pytest.raises(Exception, match="The columns are key, value, topic"):
        stream.option("columns", "valu").load()
