"""Batch reads of the changes of a table, without Spark."""

from __future__ import annotations

import pytest

from storage import Store, Table
from tests.txnctl.spark.source.change_steps import batch_rows


@pytest.fixture
def table(store: Store) -> Table:
    store.create_table("accounts")
    return store.table("accounts")


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
