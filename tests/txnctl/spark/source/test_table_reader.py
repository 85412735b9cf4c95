"""Table reader: `txnctl/spark/source/table_reader.py`."""

from __future__ import annotations

import pytest

from storage import Store
from tests.txnctl.spark.source.table_range_steps import rows


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
