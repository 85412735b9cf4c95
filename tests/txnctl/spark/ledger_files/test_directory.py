"""Spark reads topics and tables from files: with the data source, natively, and as a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import IsolationLevel, Store
from tests.row_json import row_json
from txnctl.spark import read_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


pytestmark = pytest.mark.needs_program("java")


LEVELS = ["READ_COMMITTED", "READ_UNCOMMITTED"]


def options(store: Store, place: Path, **given: str) -> dict[str, str]:
    return {"path": store.path, "topics": "one,two", "offloadPath": str(place / "off loaded"), **given}


def load(spark: SparkSession, **given: str) -> DataFrame:
    return spark.read.format("txnctl").options(**given).load()


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row.topic, row.ledgerId, row.entryId, row.batchIndex))


@pytest.mark.parametrize("level", LEVELS)
def test_files_are_read_as_the_store_is(
    spark: SparkSession, aborted_and_open: Store, tmp_path: Path, level: str
):
    """With the data source and natively, all columns are those that the store itself gives."""
    asked = options(aborted_and_open, tmp_path, isolationLevel=level)
    wanted = rows(load(spark, **{name: text for name, text in asked.items() if name != "offloadPath"}))
    assert {row.txnState for row in wanted} >= (
        {"OPEN", "ABORTED"} if level == LEVELS[1] else {"COMMITTED", None}
    )
    assert rows(load(spark, **asked)) == wanted
    native = read_topic(spark, **asked)
    assert native.columns == load(spark, **asked).columns
    assert rows(native) == wanted


@pytest.mark.parametrize("level", LEVELS)
def test_bounds_within_files_and_batches(
    spark: SparkSession, aborted_and_open: Store, tmp_path: Path, level: str
):
    """A read from one message to another one gives the same from files."""
    given = {
        "topics": "one", "isolationLevel": level, "startingPosition": "1:1:2", "endingPosition": "3:1:1",
        "includeProperties": "false",
    }  # fmt: skip
    wanted = rows(load(spark, path=aborted_and_open.path, **given))
    asked = options(aborted_and_open, tmp_path, **given)
    assert wanted and "properties" not in wanted[0].asDict()
    assert rows(load(spark, **asked)) == wanted
    assert rows(read_topic(spark, **asked)) == wanted


def test_a_frame_reads_the_same_whatever_is_written_later(
    spark: SparkSession, aborted_and_open: Store, tmp_path: Path
):
    """It was planned once, and its files do not change."""
    asked = options(aborted_and_open, tmp_path, topics="one", isolationLevel=LEVELS[1])
    frames = [load(spark, **asked), read_topic(spark, **asked)]
    before = [rows(frame) for frame in frames]
    with aborted_and_open.create_producer("one") as producer:
        for _ in range(9):
            producer.send(b"later")
    for each in row_json(aborted_and_open.reports.list_transactions()):
        aborted_and_open.commit_transaction(each["txnId"])
    load(spark, **asked).count()
    assert [rows(frame) for frame in frames] == before


def test_an_empty_topic_is_an_empty_frame(spark: SparkSession, store: Store, tmp_path: Path):
    """With the columns of a message."""
    store.create_topic("one")
    frame = read_topic(spark, **options(store, tmp_path, topics="one"))
    assert (frame.count(), frame.columns[:2]) == (0, ["key", "value"])


def test_a_table_is_read_from_files(spark: SparkSession, aborted_and_open: Store, tmp_path: Path):
    """Its rows are written when the read is planned."""
    given = {"path": aborted_and_open.path, "table": "accounts", "minPartitions": "3"}
    found = load(spark, **given, offloadPath=str(tmp_path / "there")).collect()
    assert sorted(found) == sorted(load(spark, **given).collect())
    assert len(found) == 50 and any((tmp_path / "there").rglob("*.parquet"))


def test_a_stream_reads_files(spark: SparkSession, aborted_and_open: Store, tmp_path: Path):
    """Micro-batches over several runs give every committed message once, and nothing else."""
    asked = options(aborted_and_open, tmp_path, startingPosition="earliest", maxMessagesPerTrigger="10")
    found: list[bytes] = []

    def run() -> None:
        stream = spark.readStream.format("txnctl").options(**asked).load()
        query = (
            stream.writeStream.foreachBatch(
                lambda frame, _: found.extend(row.value for row in frame.collect())
            )
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    run()
    with aborted_and_open.create_producer("one") as producer:
        producer.send_batch([b"more", b"and more"])
    for each in row_json(aborted_and_open.reports.list_transactions()):
        aborted_and_open.commit_transaction(each["txnId"])
    run()
    wanted = [
        message.value
        for topic in ("one", "two")
        for message in aborted_and_open.reader(topic, isolation_level=IsolationLevel.READ_COMMITTED)
    ]
    assert sorted(found) == sorted(wanted)
    assert any((tmp_path / "off loaded").rglob("ranges/*.parquet"))
