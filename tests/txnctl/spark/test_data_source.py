"""spark.read.format("txnctl") in a session of two task slots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    assert (frame.count(), len(frame.columns)) == (0, 12)


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
    spark.catalog.dropTempView("orders")


def test_temporary_views_have_every_option(spark: SparkSession, orders: Store, path: str) -> None:
    """Of topics and tables: columns with types, keys, bounds, isolation, versions; a schema goes beside them."""
    orders.create_table("names")
    with orders.transaction() as txn:
        orders.table("names").put(b"a", b"1", txn=txn)
        orders.table("names").put(b"b", b"2", txn=txn)
    for view, options in {
        "two": "topic 'orders', columns 'value string, entryId', keys 'k,', endingPosition '1:1'",
        "dirty": "topic 'orders', isolationLevel 'READ_UNCOMMITTED'",
        "one": "table 'names', columns 'value string', keyFrom 'b', keyUntil 'c'",
    }.items():
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} USING txnctl OPTIONS (path '{path}', {options})")
    assert [tuple(row) for row in spark.sql("SELECT * FROM two").collect()] == [("0", 0), ("2", 0)]
    assert spark.sql("SELECT count(*) FROM dirty").first() == (34,)
    assert spark.sql("SELECT * FROM one").collect() == [("2",)]
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW one (value STRING, key STRING) USING txnctl OPTIONS (path '{path}', table 'names')"
    )
    assert spark.sql("SELECT * FROM one ORDER BY key").collect() == [("1", "a"), ("2", "b")]
    for view in ("two", "dirty", "one"):
        spark.catalog.dropTempView(view)


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, with filters pushed to Python data sources."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield spark
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")


def filters_left(frame: DataFrame) -> str:
    """The filters that Spark evaluates itself."""
    plan = str(frame._jdf.queryExecution().optimizedPlan().toString())
    return "".join(line for line in plan.splitlines() if "Filter" in line)


def test_filters_are_pushed_where_option_and_session_say_so(
    pushing: SparkSession, orders: Store, path: str
) -> None:
    """On key, position and publish time, as SQL has them; what is left is evaluated by Spark."""
    for condition, left in (
        ("key = 'k'", ""),
        ("key IN ('k', 'x') AND ledgerId = 1 AND entryId <= 2", ""),
        ("ledgerId > 1 AND publishTime >= timestamp'2024-01-01 00:00:00Z'", ""),
        ("key >= X'00' AND key < X'ff'", ""),
        ("key = 'k' AND batchIndex = 0", "batchIndex"),
        ("key IS NULL OR ledgerId = 1", "OR"),
        ("key <> 'k'", "NOT"),
    ):
        pushed = read(pushing, path, topic="orders", pushFilters="true").where(condition)
        plain = read(pushing, path, topic="orders").where(condition)
        assert values(pushed) == values(plain), condition
        assert (left in filters_left(pushed)) if left else not filters_left(pushed), condition
        assert filters_left(plain)


def test_a_key_of_a_table_is_one_partition_of_one_key(
    pushing: SparkSession, orders: Store, path: str
) -> None:
    """Also as text, and with a version; the plan holds nothing of the other rows."""
    orders.create_table("names")
    orders.table("names").import_rows((b"%03d" % number, b"v%d" % number) for number in range(100))
    schemas = (None, "key string, value binary")
    for schema in schemas:
        frame = read(pushing, path, schema, table="names", pushFilters="true", minPartitions="4")
        found = frame.where("key = '007'")
        assert found.rdd.getNumPartitions() == 1
        assert [bytes(row.value) for row in found.collect()] == [b"v7"]
    frame = read(pushing, path, "key string", table="names", pushFilters="true").where("key LIKE '01%'")
    assert [row.key for row in frame.collect()] == [f"01{digit}" for digit in range(10)]


def test_spark_keeps_the_filters_of_a_frame_for_its_next_query(
    pushing: SparkSession, orders: Store, path: str
) -> None:
    """The reason for the option: a fact about Spark, and where it ends, pushFilters can be the default."""
    plain = read(pushing, path, topic="orders")
    everything, first = plain.count(), plain.where("ledgerId = 1").count()
    assert plain.count() == everything > first
    frame = read(pushing, path, topic="orders", pushFilters="true")
    assert frame.count() == everything
    assert frame.where("ledgerId = 1").count() == first
    assert frame.count() == first


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
        ({"topic": "orders", "columns": "values"}, "The columns are key, value, topic,"),
        ({"topic": "orders", "kafka.bootstrap.servers": "x"}, "Option path names the store."),
        ({"topic": "orders", "pushFilters": "true"}, "spark.sql.python.filterPushdown.enabled"),
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
