"""spark.read.format("txnctl") in a session of two task slots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("pyspark")


@pytest.fixture
def orders(store: Store) -> Store:
    """A topic with 30 plain messages in batches of three, a committed, an aborted and an open one."""
    store.create_topic("orders", ledger_entries_max=4)
    with store.create_producer("orders") as producer:
        for number in range(10):
            producer.send_batch(
                [b"%d" % (number * 3 + each) for each in range(3)],
                keys=[b"k", None, b""],
                properties=[{"a": "b"}, None, {}],
                event_times=[1_000, None, 0],
            )
        committed, aborted, held = (
            store.begin_transaction(),
            store.begin_transaction(),
            store.begin_transaction(),
        )
        for txn, value in ((committed, b"committed"), (aborted, b"aborted"), (held, b"open")):
            producer.send(value, txn=txn)
        producer.send(None)
    store.commit_transaction(committed)
    store.admin.transactions.abort_transaction(aborted)
    return store


def read(spark: SparkSession, path: str, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("txnctl").option("path", path)
    for name, value in options.items():
        reader = reader.option(name, value)
    return (reader if schema is None else reader.schema(schema)).load()


def values(frame: DataFrame) -> list[Any]:
    return [None if row.value is None else bytes(row.value) for row in frame.select("value").collect()]


def test_the_format_is_found_and_reads_what_is_committed(
    spark: SparkSession, orders: Store, path: str
) -> None:
    """Without registration; aborted and open messages, and what is behind the open one, are not there."""
    frame = read(spark, path, topic="orders", minPartitions="3")
    assert frame.rdd.getNumPartitions() == 3
    assert values(frame) == [b"%d" % number for number in range(30)] + [b"committed"]


def test_all_columns_arrive_as_documented(spark: SparkSession, orders: Store, path: str) -> None:
    """The first and the last message, at READ_UNCOMMITTED."""
    frame = read(spark, path, topic="orders", isolationLevel="READ_UNCOMMITTED")
    found = [row.asDict() for row in frame.selectExpr("*", "unix_millis(eventTime) event").collect()]
    first, second, last = found[0], found[1], found[-1]
    assert (bytes(first["key"]), first["topic"], first["properties"]) == (b"k", "orders", {"a": "b"})
    assert (first["ledgerId"], first["entryId"], first["batchIndex"], first["event"]) == (1, 0, 0, 1_000)
    assert (second["key"], second["properties"], second["event"], second["batchIndex"]) == (None, {}, None, 1)
    assert (last["value"], last["batchIndex"], last["txnId"], last["txnState"]) == (None, -1, None, None)
    states = [(bytes(row["value"]), row["txnState"]) for row in found[30:33]]
    assert states == [(b"committed", "COMMITTED"), (b"aborted", "ABORTED"), (b"open", "OPEN")]
    published = next(iter(orders.reader("orders"))).publish_time
    assert first["publishTime"].timestamp() == pytest.approx(published / 1000)


def test_a_schema_reads_only_what_it_names(spark: SparkSession, orders: Store, path: str) -> None:
    """The fast way: value alone, as bytes or as text; and without properties by an option."""
    assert read(spark, path, "value string", topic="orders").first() == ("0",)
    assert read(spark, path, topic="orders", includeHeaders="false").columns[-3:] == [
        "deliveryTime",
        "txnId",
        "txnState",
    ]


def test_a_data_frame_is_planned_once(spark: SparkSession, orders: Store, path: str) -> None:
    """Messages that come after the first action are not in the second; a new DataFrame has them."""
    frame = read(spark, path, "value binary", topic="orders")
    before = frame.count()
    with orders.create_producer("orders") as producer:
        producer.send(b"later")
    orders.admin.transactions.abort_transaction("0:3")
    assert frame.count() == before
    assert read(spark, path, "value binary", topic="orders").count() == before + 2


def test_an_empty_topic_is_an_empty_frame(spark: SparkSession, store: Store, path: str) -> None:
    """With its schema."""
    store.create_topic("empty")
    frame = read(spark, path, topic="empty")
    assert (frame.count(), len(frame.columns)) == (0, 11)


def test_it_joins_with_a_table_as_of_a_time(spark: SparkSession, orders: Store, path: str) -> None:
    """Both are DataFrames like any others. No transaction is open that a read at a version would have to stay below."""
    for row in orders.reports.list_transactions():
        orders.admin.transactions.abort_transaction(row.txn_id)
    orders.create_table("names")
    at = orders.table("names").put(b"k", b"customer")
    orders.table("names").put(b"k", b"changed")
    names = read(spark, path, "key string, value string", table="names", asOf=str(at))
    texts = read(spark, path, "key string, batchIndex int", topic="orders")
    joined = texts.join(names, "key").groupBy("value").count().collect()
    assert [tuple(row) for row in joined] == [("customer", 10)]


def test_sql_reads_through_a_view(spark: SparkSession, orders: Store, path: str) -> None:
    """A temporary view keeps its options."""
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders USING txnctl OPTIONS (path '{path}', topic 'orders')")
    assert spark.sql("SELECT count(*) FROM orders WHERE txnId IS NULL").first() == (30,)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"topic": "ordrs"}, "TopicNotFound: there is no topic ordrs\nDid you mean orders?"),
        ({"topic": "orders", "isolationLevl": "x"}, "isolationlevl is not an option of reading"),
        (
            {"topic": "orders", "startingPosition": "x"},
            "InvalidPosition: startingPosition: 'x' is not a position",
        ),
        ({"table": "orders"}, "TableNotFound: there is no table orders"),
        ({}, "no topic to read is given"),
    ],
)
def test_what_is_wrong_is_told_as_an_error_of_the_tool(
    spark: SparkSession, orders: Store, path: str, options: dict[str, str], told: str
) -> None:
    """Spark shows it at the end of its own, with what to do next."""
    with pytest.raises(Exception, match="PYTHON_DATA_SOURCE_ERROR") as error:
        read(spark, path, **options).collect()
    assert told in str(error.value)


def test_a_store_that_is_not_there_is_not_created(spark: SparkSession, tmp_path: Path) -> None:
    """The error names the path."""
    missing = tmp_path / "none"
    with pytest.raises(Exception, match="StoreNotFound") as error:
        read(spark, str(missing), topic="t").collect()
    assert str(missing) in str(error.value)
    assert not missing.exists()


def test_a_column_that_is_not_there_is_told_with_the_nearest(
    spark: SparkSession, orders: Store, path: str
) -> None:
    """The schema that is asked for is checked."""
    with pytest.raises(Exception, match="Did you mean value"):
        read(spark, path, "values binary", topic="orders").collect()
