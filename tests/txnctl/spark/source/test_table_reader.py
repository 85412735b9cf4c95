"""Table reader: `txnctl/spark/source/table_reader.py`."""

from __future__ import annotations

import pytest

from storage import Store
from tests.txnctl.spark.asked import of_rows
from tests.txnctl.spark.source.table_range_steps import rows
from txnctl.spark.options import table_read
from txnctl.spark.source.table_reader import plan_partitions


@pytest.mark.parametrize("parts", ["1", "3", "8"])
def test_all_rows_are_read_once_in_the_order_of_their_keys(filled: Store, path: str, parts: str) -> None:
    """Each with the version that it has, however the table is cut."""
    expected = [
        {"key": row.key, "value": row.value, "timestamp": row.version} for row in filled.table("t").scan()
    ]
    assert rows(path, minPartitions=parts) == expected
    assert len(expected) == 99


def test_as_of_a_version_all_partitions_show_that_moment(filled: Store, path: str) -> None:
    """What was committed later, in whatever part of the table, is not there."""
    table = filled.table("t")
    at = table.delete(b"051")
    before = rows(path)
    for key in (b"000", b"099", b"zzz"):
        table.put(key, b"new")
    assert rows(path, asOf=str(at), minPartitions="4") == before
    assert [row["value"] for row in rows(path)].count(b"new") == 3


def test_all_partitions_show_the_version_that_the_plan_finds(filled: Store, path: str) -> None:
    """The newest that no open transaction can change, also if the transaction commits while tasks run."""
    table = filled.table("t")
    before = rows(path)
    writer = filled.transaction()
    table.put(b"zzz", b"new")
    options = table_read({"path": path, "table": "t", "asOf": "now", "minPartitions": "4"})
    partitions, schema = plan_partitions(options), of_rows()
    for key in (b"000", b"050", b"099"):
        table.put(key, b"new", txn=writer)
    writer.commit()
    assert [
        row for part in partitions for batch in part.batches(schema) for row in batch.to_pylist()
    ] == before
    assert [row["value"] for row in rows(path, asOf="now")].count(b"new") == 4
