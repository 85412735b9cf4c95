"""Writing topics and tables with Spark, in batches and as a stream."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType

from storage import Store
from storage.errors import InvalidValue, TxnctlError
from storage.limits import MESSAGE_BYTES_MAX
from tests.row_json import row_json
from tests.waiting import wait_for
from txnctl.spark.data_source import TxnctlDataSource
from txnctl.spark.sink import progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def store(store: Store) -> Store:
    """An open store with two topics and a table."""
    for topic in ("t", "u"):
        store.create_topic(topic)
    store.create_table("accounts")
    return store


def save(rows: DataFrame, store: Store, **options: str) -> None:
    rows.write.format("txnctl").mode("append").options(path=store.path, **options).save()


def schema_of(columns: str) -> StructType:
    """Columns of text, where not `name:type`."""
    schema = StructType()
    for column in columns.split():
        name, _, type_ = column.partition(":")
        schema = schema.add(name, type_ or "string")
    return schema


def values(store: Store, topic: str = "t") -> list[bytes | None]:
    return [message.value for message in store.reader(topic)]


def left_behind(store: Store) -> list[Path]:
    """Staged files that nothing removes before a day is over. A task may outlive the write that failed without it."""
    staging = Path(store.path) / "staging"
    with suppress(AssertionError):
        wait_for(lambda: not list(staging.rglob("*.batches")), "a task is left")
    return [path for path in staging.rglob("*") if path.is_file() and path.suffix != ".aborted"]


class TestBatch:
    """A DataFrame is written in one transaction."""

    def test_rows_in_order(self, spark: SparkSession, store: Store) -> None:
        """Partitions one after the other, in each the rows in their order, all in one transaction; nothing is left."""
        rows = spark.range(0, 5000, 1, 3).selectExpr("cast(id AS string) AS value")
        save(rows, store, topic="t")
        assert values(store) == [b"%d" % number for number in range(5000)]
        assert len({message.txn_id for message in store.reader("t")}) == 1
        assert left_behind(store) == []
        assert os.stat(Path(store.path) / "staging").st_mode & 0o777 == 0o700

    def test_every_column(self, spark: SparkSession, store: Store) -> None:
        """Key, properties, event time and topic of a row are those of its message; a null value is a tombstone."""
        rows = spark.sql("""
            SELECT * FROM VALUES
              ('u', 'k1', X'00ff', map('n', 'v'), timestamp '2024-05-01 12:00:00.123456'),
              (NULL, NULL, NULL, NULL, NULL),
              ('persistent://public/default/u', '', X'', map(), timestamp '1970-01-01 00:00:00')
            AS rows (topic, key, value, properties, eventTime)""").coalesce(1)
        save(rows, store, topic="t", producerName="loader")
        assert values(store) == [None]
        assert [(m.value, m.key, m.properties, m.event_time, m.producer_name) for m in store.reader("u")] == [
            (b"\x00\xff", b"k1", {"n": "v"}, 1714564800123, "loader"),
            (b"", b"", {}, 0, "loader"),
        ]

    def test_a_table(self, spark: SparkSession, store: Store) -> None:
        """Keys are put, and deleted where the value is null."""
        accounts = store.table("accounts")
        accounts.put(b"k3", b"old")
        rows = spark.range(0, 2000, 1, 2).selectExpr(
            "concat('k', id) AS key", "if(id = 3, NULL, cast(id AS string)) AS value"
        )
        save(rows, store, table="accounts")
        found = {row.key: row.value for row in accounts.scan()}
        assert found == {b"k%d" % number: b"%d" % number for number in range(2000) if number != 3}

    def test_a_write_with_an_id_is_done_once(self, spark: SparkSession, store: Store) -> None:
        """The same rows again store nothing, however Spark divides them; a write with another id does."""
        for partitions, write_id in ((1, "daily-1"), (3, "daily-1"), (2, "daily-2")):
            rows = spark.range(0, 6, 1, partitions).selectExpr("cast(id AS string) AS value", "'k' AS key")
            save(rows, store, topic="t", writeId=write_id)
        assert values(store) == [b"%d" % number for number in range(6)] * 2
        assert progress.last_batch(store, "write:daily-1") == 0
        assert left_behind(store) == []

    def test_an_id_of_another_write(self, spark: SparkSession, store: Store) -> None:
        """Other rows, other topics, or a topic that was deleted since: the error says what the id was used for."""
        rows = spark.sql("SELECT * FROM VALUES ('1', 'a'), ('2', 'b') AS rows (value, key)")
        save(rows, store, topic="t", writeId="daily")
        others = [
            ("its rows were different", rows.selectExpr("value", "'c' AS key"), "t"),
            ("its rows were different", rows.selectExpr("key AS value", "value AS key"), "t"),
            ("this one has 1 row", rows.limit(1), "t"),
            ("this one is for u", rows, "u"),
        ]
        for difference, other, topic in others:
            with pytest.raises(
                AnalysisException, match=f"{difference}; it stored 2 rows in t, by transaction 0:1 at "
            ):
                save(other, store, topic=topic, writeId="daily")
        save(rows, store, topic="t", writeId="daily2", writeFingerprint="1")
        with pytest.raises(AnalysisException, match="input or options were different"):
            save(rows, store, topic="t", writeId="daily2", writeFingerprint="2")
        assert (sorted(values(store)), values(store, "u")) == ([b"1", b"1", b"2", b"2"], [])
        store.admin.topics.delete_topic("t", force=True)
        store.create_topic("t")
        with pytest.raises(AnalysisException, match="topic t was deleted since"):
            save(rows, store, topic="t", writeId="daily")
        assert left_behind(store) == []

    def test_a_topic_created_by_a_write_with_an_id(self, spark: SparkSession, store: Store) -> None:
        """The row names it as it is after the write: the same write again is known, one after its deletion is not."""
        rows = spark.sql("SELECT 'x' AS value")
        for _ in range(2):
            save(rows, store, topic="new", writeId="daily", createTopic="true")
        assert values(store, "new") == [b"x"]
        store.admin.topics.delete_topic("new", force=True)
        with pytest.raises(AnalysisException, match="topic new was deleted since"):
            save(rows, store, topic="new", writeId="daily", createTopic="true")

    def test_a_row_of_the_first_release(self, spark: SparkSession, store: Store) -> None:
        """It has no content: a write with the same topic and number of rows counts as repeated, others are refused."""
        store.create_table(progress.SINKS)
        row = {
            "batchId": 0,
            "rows": 2,
            "topics": ["persistent://public/default/t"],
            "at": "x",
            "txnId": "0:9",
        }
        store.table(progress.SINKS).put(b"write:daily", json.dumps(row).encode())
        save(spark.sql("SELECT '1' AS value UNION ALL SELECT '2'"), store, topic="t", writeId="daily")
        assert values(store) == []
        with pytest.raises(AnalysisException, match="this one has 1 row"):
            save(spark.sql("SELECT '1' AS value"), store, topic="t", writeId="daily")

    def test_nothing_to_write(self, spark: SparkSession, store: Store) -> None:
        """A DataFrame without rows writes nothing."""
        save(spark.sql("SELECT 'x' AS value").where("value = 'y'"), store, topic="t")
        assert values(store) == []
        assert row_json(store.reports.list_transactions(ended=True)) == []

    def test_staging_elsewhere(self, spark: SparkSession, store: Store, tmp_path: Path) -> None:
        """With stagingPath files lie there, and nothing in the store."""
        place = tmp_path / "shared"
        save(spark.sql("SELECT 'x' AS value"), store, topic="t", stagingPath=place.as_uri())
        assert values(store) == [b"x"]
        assert list(place.iterdir()) == []
        assert not (Path(store.path) / "staging").exists()


class TestRefusals:
    """A write that cannot be done says why, and leaves nothing."""

    @pytest.mark.parametrize(
        ("columns", "options", "message"),
        [
            ("value", {"topic": "none"}, "there is no topic .*none"),
            ("key value", {"table": "none"}, "there is no table none"),
            ("value", {}, "the write has no target"),
            ("body", {"topic": "t"}, "a topic takes no column body"),
            ("value:integer", {"topic": "t"}, "column value is int"),
            ("value", {"topic": "t", "stagingPath": "rel"}, "rel is not a directory for staged files"),
            ("value", {"topic": "t", "path": "/nowhere"}, "there is no store at /nowhere"),
            ("value", {"topic": "t", "tpoic": "t"}, "tpoic is not an option of writing"),
        ],
    )
    def test_before_any_task_runs(
        self, store: Store, columns: str, options: dict[str, str], message: str
    ) -> None:
        """What the options and the columns cannot mean is refused where the write begins, batch and stream alike."""
        source = TxnctlDataSource({"path": store.path} | options)
        schema = schema_of(columns)
        with pytest.raises(TxnctlError, match=message):
            source.writer(schema, overwrite=False)
        with pytest.raises(TxnctlError, match=message):
            source.streamWriter(schema, overwrite=False)
        assert not (Path(store.path) / "staging").exists()

    def test_overwriting(self, store: Store) -> None:
        """Modes that would replace what is there are refused, with advice."""
        source, schema = (
            TxnctlDataSource({"path": store.path, "topic": "t"}),
            schema_of("value"),
        )
        for make in (source.writer, source.streamWriter):
            with pytest.raises(InvalidValue, match="cannot overwrite") as caught:
                make(schema, overwrite=True)
            assert "append" in (caught.value.hint or "")

    def test_a_stream_with_an_id(self, store: Store) -> None:
        """A streaming query has an id of its own."""
        source = TxnctlDataSource({"path": store.path, "topic": "t", "writeId": "x"})
        with pytest.raises(InvalidValue, match="a streaming query has an id of its own"):
            source.streamWriter(schema_of("value"), overwrite=False)

    def test_a_commit_that_fails(self, spark: SparkSession, store: Store) -> None:
        """A row for a topic that is not there fails the write when all tasks are done: the error names the topic."""
        with pytest.raises(Exception, match=r"there is no topic .*none"):
            save(spark.sql("SELECT * FROM VALUES ('x', 't'), ('y', 'none') AS rows (value, topic)"), store)
        assert values(store) == []
        assert left_behind(store) == []
        assert row_json(store.reports.list_transactions()) == []

    def test_a_row_too_large(self, spark: SparkSession, store: Store) -> None:
        """It is named with its size, and the rows before it, in other partitions too, are not stored."""
        rows = spark.range(0, 20, 1, 2).selectExpr(
            f"if(id = 15, repeat('x', {MESSAGE_BYTES_MAX + 1}), 'small') AS value"
        )
        with pytest.raises(
            Exception, match="row 6 of partition 1 cannot be stored: the row has 5,242,881 bytes"
        ):
            save(rows, store, topic="t")
        assert values(store) == []
        assert left_behind(store) == []


class TestStream:
    """A streaming query writes each micro-batch in a transaction of its own."""

    def run(self, spark: SparkSession, source: Path, start: Callable[[Any], Any]) -> Any:
        lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(str(source))
        query = start(lines.writeStream.format("txnctl").trigger(availableNow=True))
        try:
            query.awaitTermination(120)
            assert query.exception() is None
        finally:
            query.stop()
        return query

    def test_each_micro_batch_once(self, spark: SparkSession, store: Store, tmp_path: Path) -> None:
        """Started again from its checkpoint a query goes on; with another checkpoint it begins anew, and repeats."""
        source = tmp_path / "source"
        source.mkdir()

        def write(name: str, numbers: range) -> None:
            (source / name).write_text("".join(f"{number}\n" for number in numbers))

        def start(checkpoint: str) -> Callable[[Any], Any]:
            return lambda writer: (
                writer.option("path", store.path).option("topic", "t")
                .option("checkpointLocation", str(tmp_path / checkpoint)).start()
            )  # fmt: skip

        write("a", range(10))
        write("b", range(10, 30))
        query = self.run(spark, source, start("first"))
        write("c", range(30, 35))
        assert self.run(spark, source, start("first")).id == query.id
        assert sorted(values(store), key=lambda value: int(value or b"")) == [b"%d" % n for n in range(35)]
        assert len({message.txn_id for message in store.reader("t")}) == 3
        row = store.table(progress.SINKS).get(str(query.id).encode())
        assert row is not None and {k: v for k, v in json.loads(row).items() if k in ("batchId", "rows")} == {
            "batchId": 2, "rows": 5,
        }  # fmt: skip
        assert left_behind(store) == []
        self.run(spark, source, start("second"))
        assert len(values(store)) == 70
