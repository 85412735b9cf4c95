"""Spark on a topic whose first messages are trimmed: from offloaded files where there are any, or with an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


COUNT = 30


@pytest.fixture
def orders(store: Store) -> Store:
    """A topic of small ledgers."""
    store.create_topic("orders", ledger_entries_max=4)
    with store.create_producer("orders") as producer:
        for number in range(COUNT):
            producer.send(b"%d" % number)
    return store


def read(spark: SparkSession, path: str, **options: str) -> DataFrame:
    return spark.read.format("txnctl").options(path=path, topic="orders", **options).load()


def values(frame: DataFrame) -> list[int]:
    return [int(bytes(row.value)) for row in frame.select("value").collect()]


def test_trimmed_ledgers_are_read_from_files_and_the_rest_from_the_store(
    spark: SparkSession, orders: Store, path: str, tmp_path: Path, run: Any
) -> None:
    """By the data source, by Spark's own Parquet reader and by a stream, each message once."""
    from txnctl.spark import read_topic

    place = str(tmp_path / "off")
    assert run("pipeline", "offload", "orders", place, "--store", path).status == 0
    trimmed = run("topics", "trim", "orders", "--offloaded", place, "--store", path, "-o", "json").json
    assert (trimmed["messages"], trimmed["firstPosition"]) == (28, "8:0")
    assert trimmed["offloadedTo"].startswith("file://")
    with orders.create_producer("orders") as producer:
        producer.send(b"%d" % COUNT)
    expected = list(range(COUNT + 1))
    assert values(read(spark, path, offloadPath=place)) == expected
    assert values(read_topic(spark, path=path, topic="orders", offloadPath=place)) == expected
    stream = spark.readStream.format("txnctl").options(
        path=path, topic="orders", offloadPath=place, startingPosition="earliest", maxMessagesPerTrigger="9"
    )
    query = (
        stream.load().select("value", "ledgerId", "entryId").writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(tmp_path / "out"))
        .trigger(availableNow=True).start()
    )  # fmt: skip
    assert query.awaitTermination(180)
    assert sorted(values(spark.read.parquet(str(tmp_path / "out")))) == expected
    assert values(read(spark, path)) == expected[28:]


def test_a_checkpoint_within_trimmed_messages_ends_the_query(
    spark: SparkSession, orders: Store, path: str, tmp_path: Path
) -> None:
    """With the first position left; with failOnDataLoss false the query goes on there. A batch does likewise."""

    def run_stream(**options: str) -> None:
        stream = spark.readStream.format("txnctl").options(
            path=path, topic="orders", startingPosition="earliest", **options
        )
        query = (
            stream.load().select("value").writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint")).option("path", str(tmp_path / "out"))
            .trigger(availableNow=True).start()
        )  # fmt: skip
        assert query.awaitTermination(180)

    run_stream()
    with orders.create_producer("orders") as producer:
        for number in range(COUNT, COUNT + 10):
            producer.send(b"%d" % number)
    orders.admin.topics.truncate_topic("orders")
    with orders.create_producer("orders") as producer:
        producer.send(b"100")
    with pytest.raises(
        Exception, match="messages of topic orders after 8:1 were trimmed, at most 40"
    ) as lost:
        run_stream()
    assert "failOnDataLoss" in str(lost.value)
    run_stream(failOnDataLoss="false")
    assert sorted(values(spark.read.parquet(str(tmp_path / "out")))) == [*range(COUNT), 100]
    with pytest.raises(Exception, match="the first one left is at 11:0"):
        values(read(spark, path, startingPosition="1:0"))
    assert values(read(spark, path, startingPosition="1:0", failOnDataLoss="false")) == [100]
