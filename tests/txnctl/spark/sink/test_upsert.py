"""Upserts into a table with Spark, and a change stream of one table into another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

from storage import Store, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def table(store: Store) -> Table:
    store.create_table("accounts")
    accounts = store.table("accounts")
    for key in (b"a", b"b", b"c"):
        accounts.put(key, b"old")
    return accounts


def upsert(rows: DataFrame, store: Store, **options: str) -> None:
    options |= {"path": store.path, "table": "accounts", "upsert": "true"}
    rows.write.format("txnctl").mode("append").options(**options).save()


def content(table: Table) -> dict[bytes, bytes]:
    return {row.key: row.value for row in table.scan()}


def test_rows_are_inserted_updated_and_deleted(spark: SparkSession, store: Store, table: Table) -> None:
    """In one transaction; of several rows of a key, in whichever task, the one of the highest order."""
    rows = spark.sql("""SELECT * FROM VALUES
        ('d', '1', false, 5), ('a', '2', false, 2), ('a', 'x', true, 1), ('b', NULL, true, 4), ('b', '3', false, 3)
        AS rows (account, value, gone, version)""").repartition(3)
    for _ in range(2):
        upsert(rows, store, key="account", deleteColumn="gone", orderColumn="version", writeId="once")
    assert content(table) == {b"a": b"2", b"c": b"old", b"d": b"1"}
    changes = list(table.changes())[3:]
    assert [(each.kind, each.key) for each in changes] == [
        ("update", b"a"),
        ("delete", b"b"),
        ("insert", b"d"),
    ]
    assert len({each.version_ns for each in changes}) == 1


def test_two_rows_of_a_key_need_an_order(spark: SparkSession, store: Store, table: Table) -> None:
    """Nothing is stored."""
    rows = spark.sql(
        "SELECT * FROM VALUES ('a', '1', 1), ('z', '2', 1), ('z', '3', 1) AS rows (key, value, n)"
    )
    with pytest.raises(AnalysisException, match="two rows of the batch have key z; which is the later one"):
        upsert(rows.select("key", "value").repartition(3), store)
    with pytest.raises(AnalysisException, match="two rows of the batch have key z and order 1"):
        upsert(rows, store, orderColumn="n")
    assert content(table) == {b"a": b"old", b"b": b"old", b"c": b"old"}
    upsert(rows.limit(1).select("key", "value"), store)
    assert content(table)[b"a"] == b"1"


def test_changes_of_one_table_are_copied_to_another(
    spark: SparkSession, store: Store, table: Table, tmp_path: Path
) -> None:
    """As a stream; a second query goes on from the checkpoint, and a batch read sees the same changes."""
    store.create_table("copy")

    def copy() -> None:
        changes = spark.readStream.format("txnctl").options(
            path=store.path, table="accounts", readChanges="true"
        )
        rows = changes.load().selectExpr("key", "value", "kind = 'delete' AS gone", "timestamp AS version")
        writer = rows.writeStream.format("txnctl").options(path=store.path, table="copy", upsert="true")
        writer = writer.options(deleteColumn="gone", orderColumn="version")
        query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start()
        query.awaitTermination()

    copy()
    assert content(store.table("copy")) == content(table)
    table.put(b"a", b"new")
    table.put(b"a", b"newer")
    table.delete(b"b")
    copy()
    assert content(store.table("copy")) == content(table) == {b"a": b"newer", b"c": b"old"}
    read = (
        spark.read.format("txnctl").options(path=store.path, table="accounts", readChangeFeed="true").load()
    )
    assert read.columns == ["kind", "key", "value", "previousValue", "timestamp", "txnId"]
    kinds = [row.kind for row in read.orderBy("timestamp").collect()]
    assert kinds == ["insert"] * 3 + ["update", "update", "delete"]
