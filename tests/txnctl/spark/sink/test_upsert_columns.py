"""The columns of an upsert and what becomes of its rows in a task (no Spark, no store)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from storage.errors import InvalidValue
from storage.topic.batching import unpacked
from txnctl.spark.sink import task_writer
from txnctl.spark.sink.columns import SinkColumns, sink_columns
from txnctl.spark.sink.staging import Staging, write_name
from txnctl.spark.upsert_options import UpsertOptions

FIELDS = [("account", "string"), ("value", "string"), ("gone", "boolean"), ("at", "bigint")]
UPSERT = UpsertOptions("account", "gone", "at")


def columns(fields: list[tuple[str, str]], upsert: UpsertOptions = UPSERT) -> SinkColumns:
    return sink_columns(fields, None, "accounts", upsert)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ([*FIELDS, ("name", "string")], "takes no column name"),
        (FIELDS[1:], "there is no column account"),
        (FIELDS[:3], "there is no column at"),
        ([*FIELDS, FIELDS[0]], "column account is selected twice"),
        ([*FIELDS[:2], ("gone", "string"), FIELDS[3]], "column gone is string"),
        ([*FIELDS[:3], ("at", "double")], "column at is double"),
    ],
)
def test_columns_that_do_not_fit_are_refused(fields: list[tuple[str, str]], problem: str) -> None:
    """Each by its name, with what to do."""
    with pytest.raises(InvalidValue, match=problem) as error:
        columns(fields)
    assert error.value.hint


def staged(tmp_path: Path, sink: SinkColumns, **given: Any) -> list[tuple[Any, ...]]:
    staging = Staging.at(str(tmp_path))
    attempt = task_writer.TaskAttempt(write_name("0" * 16), 3, 7, "a" * 16)
    batch = pa.RecordBatch.from_pydict(given)
    file = task_writer.stage_rows([batch], sink, staging, attempt)
    assert file is not None
    rows: list[tuple[Any, ...]] = []
    for entry in staging.entries(file, "accounts"):
        content = unpacked(entry)
        rows += zip(content.keys or (), content.values, content.event_times or (), strict=True)
    return rows


def test_a_row_that_deletes_is_staged_without_its_value(tmp_path: Path) -> None:
    """And every row with its order."""
    rows = staged(
        tmp_path, columns(FIELDS), account=["a", "b", "c"], value=["1", "2", None],
        gone=[False, True, True], at=[7, 1 << 62, 0],
    )  # fmt: skip
    assert rows == [(b"a", b"1", 7), (b"b", None, 1 << 62), (b"c", None, 0)]


@pytest.mark.parametrize(
    ("kind", "value", "order"),
    [
        ("timestamp", datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC), 1_000_005),
        ("date", date(1970, 1, 3), 2),
        ("int", 4, 4),
    ],
)
def test_times_are_orders(tmp_path: Path, kind: str, value: object, order: int) -> None:
    """To the microsecond, or the day."""
    sink = columns([("key", "string"), ("value", "string"), ("at", kind)], UpsertOptions(order="at"))
    assert staged(tmp_path, sink, key=["a"], value=["1"], at=[value]) == [(b"a", b"1", order)]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"value": None}, "row 1 of partition 3 cannot be stored: its value is null"),
        ({"at": None}, "its order is null"),
        ({"at": -1}, "its order is below 0"),
        ({"account": ""}, "key has 1 to 400 bytes"),
    ],
)
def test_a_row_that_says_too_little_is_refused(tmp_path: Path, row: dict[str, Any], problem: str) -> None:
    """By its number in the partition."""
    given = {"account": "a", "value": "1", "gone": None, "at": 1} | row
    with pytest.raises(InvalidValue, match=problem):
        staged(
            tmp_path,
            columns(FIELDS),
            **{name: pa.array([value], _TYPES[name]) for name, value in given.items()},
        )


_TYPES = {"account": pa.string(), "value": pa.string(), "gone": pa.bool_(), "at": pa.int64()}
