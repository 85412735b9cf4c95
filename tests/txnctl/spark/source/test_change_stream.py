"""Changes of a table as a stream, without Spark: what is asked of the reader, in the order in which Spark asks."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from storage import Store, Table
from storage.errors import InvalidPosition, RequestTooOld, TableNotFound
from tests.txnctl.spark.source.change_steps import batch_rows, collect, drained, rows, stream


@pytest.fixture
def table(store: Store) -> Table:
    store.create_table("accounts")
    return store.table("accounts")


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
