"""Changes of a table as Spark's source, without Spark: what is asked of it, in the order in which Spark asks."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from storage import Store, Table
from storage.errors import InvalidPosition, InvalidValue, RequestTooOld, TableNotFound
from tests.txnctl.spark.asked import struct
from txnctl.spark import options
from txnctl.spark.source.change_range import ChangeRange
from txnctl.spark.source.change_reader import ChangeReader
from txnctl.spark.source.change_stream import ChangeStreamReader

COLUMNS = ("kind", "key string", "value string", "previousValue string", "timestamp", "txnId")


@pytest.fixture
def table(store: Store) -> Table:
    store.create_table("accounts")
    return store.table("accounts")


def given(store: Store, **more: str) -> dict[str, str]:
    return {"path": store.path, "table": "accounts", "readChanges": "true", **more}


def stream(store: Store, **more: str) -> ChangeStreamReader:
    return ChangeStreamReader(options.change_stream(given(store, **more)), struct(*COLUMNS))


def rows(reader: ChangeReader | ChangeStreamReader, partitions: Any) -> list[dict[str, Any]]:
    return [row for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]


def batch_rows(store: Store, **more: str) -> list[dict[str, Any]]:
    reader = ChangeReader(options.change_read(given(store, **more)), struct(*COLUMNS))
    return rows(reader, reader.partitions())


def drained(reader: ChangeStreamReader, start: Any = None) -> tuple[list[list[dict[str, Any]]], Any]:
    """The micro-batches up to the end, each through the JSON of a checkpoint, and the last offset."""
    batches = []
    start = start or reader.initialOffset()
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        start, before = json.loads(json.dumps(end)), start
        batches.append(rows(reader, reader.partitions(before, start)))
    return batches, start


def collect(store: Store) -> None:
    """Remove every change that is older than a second."""
    store.admin.settings.set_table_retention(1000)
    store.connection.clock.sleep(1.2)
    store.maintenance.collect_garbage()


def test_a_batch_has_every_change_between_two_versions(store: Store, table: Table) -> None:
    """However many partitions read them."""
    versions = [table.put(b"a", b"1"), table.put(b"a", b"2"), table.delete(b"a"), table.put(b"b", b"3")]
    found = batch_rows(store)
    assert [(row["kind"], row["key"], row["value"], row["previousValue"]) for row in found] == [
        ("insert", "a", "1", None),
        ("update", "a", "2", "1"),
        ("delete", "a", None, "2"),
        ("insert", "b", "3", None),
    ]
    assert [row["timestamp"] for row in found] == versions
    assert [row["txnId"] for row in found] == ["0:1", "0:2", "0:3", "0:4"]
    assert batch_rows(store, minPartitions="3") == found
    between = batch_rows(store, since=str(versions[0]), until=str(versions[2]))
    assert between == found[1:3]
    assert batch_rows(store, since="now") == []


def test_micro_batches_hold_whole_transactions(store: Store, table: Table) -> None:
    """At most so many changes, or those of one transaction; all together each once."""
    for size in (2, 5, 1, 1, 3):
        with store.transaction() as txn:
            for number in range(size):
                table.put(b"%d" % number, b"x", txn=txn)
    batches, end = drained(stream(store, maxChangesPerTrigger="3"))
    assert [len(batch) for batch in batches] == [2, 5, 2, 3]
    assert [row for batch in batches for row in batch] == batch_rows(store)
    table.put(b"later", b"x")
    ((later,),), _ = drained(stream(store), end)
    assert later["key"] == "later"


def test_a_stream_rests_where_a_table_does(store: Store, table: Table) -> None:
    """Commits elsewhere make no batch, and no start too old."""
    table.put(b"a", b"1")
    _, end = drained(stream(store))
    store.create_table("busy")
    store.table("busy").put(b"k", b"v")
    reader = stream(store)
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    collect(store)
    assert reader.latestOffset(end, ReadMaxRows(5)) == end


def test_a_query_with_an_end_stops_there(store: Store, table: Table) -> None:
    """What is committed after the trigger is left to the next query."""
    first = table.put(b"a", b"1")
    reader = stream(store)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    table.put(b"a", b"2")
    end = reader.latestOffset(start, ReadAllAvailable())
    assert [row["timestamp"] for row in rows(reader, reader.partitions(start, end))] == [first]
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert reader.reportLatestOffset()["version"] > end["version"]


def test_a_checkpoint_older_than_the_changes_that_are_kept(
    store: Store, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that names the oldest start; or with failOnDataLoss false a warning, and the changes that are left."""
    table.put(b"a", b"1")
    _, end = drained(stream(store))
    last_removed = table.put(b"a", b"2")
    collect(store)
    table.put(b"a", b"3")
    for call in (
        lambda: stream(store).latestOffset(end, ReadAllAvailable()),
        lambda: stream(store).partitions(end, end),
        lambda: batch_rows(store, since=str(end["version"])),
    ):
        with pytest.raises(RequestTooOld, match=str(last_removed)) as error:
            call()
        assert "failOnDataLoss" in (error.value.hint or "")
    with caplog.at_level(logging.WARNING, "txnctl.spark"):
        ((left,),), _ = drained(stream(store, failOnDataLoss="false"), end)
    assert (left["value"], left["previousValue"]) == ("3", "2")
    assert str(last_removed) in caplog.text
    assert batch_rows(store, since=str(end["version"]), failOnDataLoss="false") == [left]


def test_changes_removed_after_the_plan(store: Store, table: Table) -> None:
    """A task fails, or goes on with those that are left."""
    table.put(b"a", b"1")
    kept = {
        fails: ChangeReader(options.change_read(given(store, failOnDataLoss=fails)), struct(*COLUMNS))
        for fails in ("true", "false")
    }
    plans = {fails: reader.partitions() for fails, reader in kept.items()}
    assert all(isinstance(part, ChangeRange) for plan in plans.values() for part in plan)
    collect(store)
    with pytest.raises(RequestTooOld):
        rows(kept["true"], plans["true"])
    assert rows(kept["false"], plans["false"]) == []


def test_a_table_that_is_another_ends_the_stream(store: Store, table: Table) -> None:
    """Deleted and created again, of another name, or in an older copy of the store."""
    table.put(b"a", b"1")
    _, end = drained(stream(store))
    with pytest.raises(RequestTooOld, match="older copy"):
        stream(store).latestOffset(end | {"version": end["version"] + 10**18}, ReadAllAvailable())
    with pytest.raises(InvalidPosition):
        stream(store).latestOffset({"orders": "1:0"}, ReadAllAvailable())
    store.admin.tables.delete_table("accounts")
    store.create_table("accounts")
    with pytest.raises(TableNotFound, match="created again"):
        stream(store).latestOffset(end, ReadAllAvailable())


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"since": "soon"}, "since 'soon' is neither a version nor a time"),
        ({"since": "now"}, "killed before its first batch"),
        ({"readChanges": "false"}, "readChanges asks for"),
        ({"until": "now"}, "until is not an option of a stream"),
        ({"topic": "t"}, "topic is not an option of a stream"),
    ],
)
def test_options_that_do_not_fit_a_stream(store: Store, more: dict[str, str], problem: str) -> None:
    """Each names what to write instead."""
    with pytest.raises(InvalidValue, match=problem):
        stream(store, **more)
