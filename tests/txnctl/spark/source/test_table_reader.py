"""Table reader: `txnctl/spark/source/table_reader.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from storage import Store
from storage.disk.view import ReadView
from storage.errors import RequestTooOld
from storage.table import read as reading
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


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The keys that are looked up or walked, the one beyond a range included."""
    keys, one, pages = list[bytes](), reading.one, ReadView.stored

    def counting_one(view: ReadView, table_id: int, key: bytes, pick: Any) -> Any:
        keys.append(key)
        return one(view, table_id, key, pick)

    def counting_pages(view: ReadView, *range_: Any, **order: Any) -> Iterator[tuple[bytes, bytes]]:
        for key, data in pages(view, *range_, **order):
            keys.append(key[8:])
            yield key, data

    monkeypatch.setattr(reading, "one", counting_one)
    monkeypatch.setattr(ReadView, "stored", counting_pages)
    return keys


@pytest.mark.parametrize("as_of", [{}, {"asOf": "now"}])
def test_single_keys_are_read_and_no_others(
    filled: Store, path: str, decoded: list[bytes], as_of: dict[str, str]
) -> None:
    """A key is one lookup; a key that was deleted or never written has no row."""
    found = rows(path, keys="007,050,nothing,042", **as_of)
    assert [(row["key"], row["value"]) for row in found] == [(b"007", b"v7"), (b"042", b"v42")]
    assert [key for key in sorted(decoded) if key > b"0"] == [b"007", b"042", b"050", b"nothing"]
    assert rows(path, keys="nothing") == []


@pytest.mark.parametrize("parts", ["1", "4"])
def test_a_range_of_keys_is_read_and_nothing_else(
    filled: Store, path: str, decoded: list[bytes], parts: str
) -> None:
    """Of a hundred rows ten are read; the plan walks no others either."""
    found = rows(path, keyFrom="020", keyUntil="030", minPartitions=parts)
    assert [row["key"] for row in found] == [b"%03d" % number for number in range(20, 30)]
    assert decoded == [*(row["key"] for row in found), b"030"]
    assert [row["key"] for row in rows(path, keyPrefix="09")] == [b"%03d" % n for n in range(90, 100)]


def test_a_time_before_the_kept_versions_is_an_error_of_the_plan(filled: Store, path: str) -> None:
    """It names the time from which on the table can be read."""
    options = table_read({"path": path, "table": "t", "timestampAsOf": "2024-05-01 10:00:00Z"})
    with pytest.raises(RequestTooOld, match=r"not kept any more; it can be read from 20.*Z on"):
        plan_partitions(options)
