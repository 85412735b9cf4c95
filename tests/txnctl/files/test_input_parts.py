"""Files as messages, part by part: every row once, or an error by file and line."""

from __future__ import annotations

import gzip
import json
import re
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.errors import BadLine, InvalidValue
from storage.limits import MESSAGE_BYTES_MAX
from txnctl.files import input_parts
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import FileMessage, MessageColumns

NONE = MessageColumns()
SKIP = InputOptions(skip=True)
SECONDS = "A time in seconds has three more digits as milliseconds."


def rows_of(
    path: Path | str, columns: MessageColumns = NONE, options: InputOptions = SKIP
) -> list[FileMessage]:
    parts = input_parts.plan(str(path), columns, options)
    return [row for part in parts for row in input_parts.read(part, columns, options)]


def values_of(path: Path | str, options: InputOptions = SKIP) -> list[Any]:
    return [json.loads(row.value or b"") for row in rows_of(path, options=options)]


def refused(path: Path | str, columns: MessageColumns = NONE) -> str:
    with pytest.raises((BadLine, InvalidValue)) as caught:
        rows_of(path, columns, InputOptions())
    return caught.value.message


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"n":1}{"n":2}', "more follows the JSON value, at character 8"),
        (b'{"n":1} x', "more follows the JSON value, at character 8"),
        (b'{"n":', "not JSON: Expecting value at character 6"),
        (b'{"n":NaN}', "not JSON: JSON has no NaN"),
        (b"[2]", "not a JSON object"),
        (b'{"n":"\xe4"}', "not UTF-8 at byte 6"),
        (b'{"when":"soon"}', "when is not a time such as 2024-05-01T10:00:00Z: 'soon'"),
        (b'{"when":"10:15:00"}', "when is not a time such as 2024-05-01T10:00:00Z: '10:15:00'"),
        (b'{"when":-1}', "when is not a time such as 2024-05-01T10:00:00Z: '-1'"),
        (
            b'{"when":20240501}',
            "when is a time in 1970, in milliseconds: 20240501. A date is written 2024-05-01.",
        ),
        (b'{"when":"1714521600"}', "when is a time in 1970, in milliseconds: 1714521600. " + SECONDS),
        (b'{"v":"' + b"x" * MESSAGE_BYTES_MAX + b'"}', "larger than a message may be, 5,242,880 bytes"),
    ],
)
def test_a_bad_line_of_json_is_named(tmp_path: Path, line: bytes, problem: str) -> None:
    """By the rules of `produce --input ndjson`; left out on request."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"n":0}\n\n' + line + b'\n{"n":9}\n')
    columns = MessageColumns(event_time="when")
    assert refused(file, columns) == f"{file}: line 3: {problem}"
    first, bad, last = rows_of(file, columns)
    assert (first.value, last.value, problem.startswith(str(bad.problem))) == (b'{"n":0}', b'{"n":9}', True)


def test_lines_of_json_stay_as_written(tmp_path: Path) -> None:
    """To the last digit and blank; a CR before LF belongs to the end; a column is text, or JSON where it is nested."""
    file = tmp_path / "10:15:00.jsonl"
    lines = [
        b'{"id": 1.10, "v": {"b":1.10,"a":[null,true]}}',
        b'{"id":\r"b\'c","v":"\\u00e4"}',
        b'{"id":null,"v":false}',
    ]
    file.write_bytes(lines[0] + b"\r\n \n" + lines[1] + b"\n" + lines[2])
    assert [row.value for row in rows_of(file)] == lines
    assert [(row.key, row.value) for row in rows_of(file, MessageColumns(key="id", value="v"))] == [
        (b"1.10", b'{"b":1.10,"a":[null,true]}'),
        (b"b'c", "ä".encode()),
        (None, b"false"),
    ]
    assert refused(file, MessageColumns(value="w")) == f"{file}: line 1: w is empty"


def test_every_part_of_a_file_has_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line once and in order, wherever the file is cut; a bad line is named by its number in the file."""
    monkeypatch.setattr(input_parts, "PART_BYTES", 37)
    file = tmp_path / "a.jsonl"
    lines = [b'{"n":%d,"t":"%s"}' % (number, b"x" * (number % 50)) for number in range(100)]
    file.write_bytes(b"\n".join(lines))
    assert len(input_parts.plan(str(file), NONE, SKIP)) > 50
    assert [row.value for row in rows_of(file)] == lines
    file.write_bytes(b"\n".join([*lines, b"x", *lines]))
    assert refused(file) == f"{file}: line 101: not JSON: Expecting value at character 1"
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert len(rows_of(tmp_path / "a.jsonl.gz")) == 201
    assert (
        refused(tmp_path / "a.jsonl.gz") == f"{file}.gz: line 101: not JSON: Expecting value at character 1"
    )
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"n":1}\n' * 1000)[:-20])
    assert refused(tmp_path / "a.jsonl.gz") == f"cannot read '{file}.gz': Truncated compressed stream"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_file_that_is_cut_after_the_plan_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The rows behind the cut are not passed over in silence, by the first part nor by one behind the new end."""
    monkeypatch.setattr(input_parts, "PART_BYTES", 4000)
    file, options = tmp_path / name, InputOptions(multi_line=False)
    file.write_bytes(b"k\n" + b'{"n":1}\n' * 1000 if name == "a.csv" else b'{"n":1}\n' * 1001)
    parts = input_parts.plan(str(file), NONE, options)
    file.write_bytes(file.read_bytes()[:2000])
    assert len(parts) == 3
    for part in parts:
        with pytest.raises(InvalidValue, match="became shorter while it was read: 2,000 of"):
            list(input_parts.read(part, NONE, options))


def test_lines_too_long_to_be_held_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of the line is no line; the next one is read."""
    monkeypatch.setattr("txnctl.files.json_rows.LINE_BYTES_MAX", 20)
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"n":"%s"}\n{"n":12345678901234}\n{"n":2}\n' % (b"x" * 3_000_000))
    assert [row.problem for row in rows_of(file)] == ["longer than 20 bytes", None, None]
    assert refused(file) == f"{file}: line 1: longer than 20 bytes"


TYPES = {
    "us": (pa.array([1_714_557_600_123_456], pa.timestamp("us", "UTC")), "2024-05-01T10:00:00.123456Z"),
    "ms": (pa.array([1_714_557_600_123], pa.timestamp("ms", "Asia/Tokyo")), "2024-05-01T10:00:00.123000Z"),
    "local": (pa.array([1_714_557_600_123_456], pa.timestamp("us")), "2024-05-01T10:00:00.123456"),
    "ns": (pa.array([-1], pa.timestamp("ns")), "1969-12-31T23:59:59.999999999"),
    "nested": (
        pa.array([{"at": [1_714_557_600_123_456_789]}], pa.struct({"at": pa.list_(pa.timestamp("ns", "UTC"))})),
        {"at": ["2024-05-01T10:00:00.123456789Z"]},
    ),
    "day": (pa.array([date(2024, 5, 1)]), "2024-05-01"),
    "daytime": (pa.array([time(10, 15)]), "10:15:00.000000"),
    "big": (pa.array([(1 << 64) - 1], pa.uint64()), (1 << 64) - 1),
    "single": (pa.array([0.1], pa.float32()), 0.1),
    "nan": (pa.array([float("nan")]), "NaN"),
    "money": (pa.array([Decimal("1.10")]), 1.10),
    "bytes": (pa.array([b"\xff"]), "/w=="),
    "words": (pa.array(["ä\"b"]).dictionary_encode(), 'ä"b'),
    "map": (pa.array([[("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int32())), {"a": 1, "b": None}),
    "pair": (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), [1, 2]),
    "no": (pa.array([None]), None),
    "a.b%s": (pa.array([True]), True),
}  # fmt: skip


def test_every_type_of_parquet_has_a_text_that_loses_nothing(tmp_path: Path) -> None:
    """Times at every depth, numbers to the last digit; a column as key is bytes as they are, or the same text."""
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({name: array for name, (array, _) in TYPES.items()}), file)
    assert values_of(file) == [{name: value for name, (_, value) in TYPES.items()}]
    assert b'"money":1.10,' in (rows_of(file)[0].value or b"")
    for key, text in (
        ("bytes", b"\xff"),
        ("money", b"1.10"),
        ("day", b"2024-05-01"),
        ("no", None),
        ("a.b%s", b"true"),
    ):
        assert rows_of(file, MessageColumns(key=key, value="us"))[0][:2] == (
            key and text,
            TYPES["us"][1].encode(),
        ), key
    first_ms = 1_714_557_600_123
    for name, at_ms in (
        ("us", first_ms),
        ("ms", first_ms),
        ("local", first_ms),
        ("day", first_ms // 86_400_000 * 86_400_000),
    ):
        assert rows_of(file, MessageColumns(event_time=name))[0].event_time_ms == at_ms, name
    assert refused(file, MessageColumns(event_time="ns")).startswith(
        f"{file}: row 1: ns is a time before 1970: 19"
    )


@pytest.mark.parametrize("number", [20240501, 1714521600])
def test_a_number_that_is_mostly_a_date_or_in_seconds_is_no_time(tmp_path: Path, number: int) -> None:
    """Text and number, in every format, by file and line; left out on request. With Ms every number is a time."""
    csv, ndjson, parquet = (tmp_path / f"a.{ending}" for ending in ("csv", "ndjson", "parquet"))
    csv.write_text(f"when,atMs\n2024-05-01,5\n{number},{number}\n")
    ndjson.write_text(f'{{"when":1714521600000,"atMs":5}}\n{{"when":{number},"atMs":{number}}}\n')
    pq.write_table(pa.table({"when": [1714521600000, number], "atMs": [5, number]}), parquet)
    when, at_ms = MessageColumns(event_time="when"), MessageColumns(event_time="atMs")
    for file, place in ((csv, "line 3"), (ndjson, "line 2"), (parquet, "row 2")):
        problem = "when is a time in 1970, in milliseconds"
        assert refused(file, when).startswith(f"{file}: {place}: {problem}: {number}. ")
        assert [row.problem for row in rows_of(file, when)] == [None, problem]
        assert [row.event_time_ms for row in rows_of(file, at_ms)] == [5, number]


def test_the_key_counts_in_the_size_of_a_message(tmp_path: Path) -> None:
    """As in the engine, which knows no line: `--on-error skip` could not leave the row out there."""
    file = tmp_path / "a.csv"
    file.write_text(f"k,v\na,b\n{'k' * 1000},{'v' * (MESSAGE_BYTES_MAX - 999)}\nc,d\n")
    columns = MessageColumns(key="k", value="v")
    assert refused(file, columns) == f"{file}: line 3: larger than a message may be, 5,242,880 bytes"
    assert [row.key for row in rows_of(file, columns)] == [b"a", None, b"c"]


def test_slices_of_nested_columns_keep_their_rows(tmp_path: Path) -> None:
    """Batches are cut from longer arrays; lists, maps and structs of each row stay with the row."""
    rows = [
        {"l": [n] * (n % 3) or None, "m": [("k", n)] if n % 2 else [], "s": {"n": n} if n % 5 else None}
        for n in range(10_000)
    ]
    types = {
        "l": pa.list_(pa.int64()),
        "m": pa.map_(pa.string(), pa.int64()),
        "s": pa.struct({"n": pa.int64()}),
    }
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(types)), tmp_path / "a.parquet")
    assert values_of(tmp_path / "a.parquet") == [{**row, "m": dict(row["m"])} for row in rows]  # type: ignore[call-overload]


def test_int96_is_in_utc(tmp_path: Path) -> None:
    """Dates far from 1970 do not wrap."""
    for year, name in ((2024, "a"), (9999, "b")):
        micros = pa.array([date(year, 5, 1)]).cast(pa.timestamp("us"))
        pq.write_table(
            pa.table({"at": micros}), tmp_path / f"{name}.parquet", use_deprecated_int96_timestamps=True
        )
        assert values_of(tmp_path / f"{name}.parquet") == [{"at": f"{year}-05-01T00:00:00.000000Z"}]


def test_groups_of_rows_are_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row once and in order; a bad row by its number in the file."""
    monkeypatch.setattr(input_parts, "PART_BYTES", 1)
    file = tmp_path / "a.parquet"
    times = ["2024-05-01"] * 30
    times[17] = "soon"
    pq.write_table(pa.table({"n": range(30), "at": times}), file, row_group_size=4)
    assert len(input_parts.plan(str(file), NONE, SKIP)) == 8
    assert [value["n"] for value in values_of(file)] == list(range(30))
    assert refused(file, MessageColumns(event_time="at")).startswith(f"{file}: row 18: at is not a time")


def test_values_without_a_form_are_problems_of_their_row(tmp_path: Path) -> None:
    """Bytes that are no text in a column of text, a time beyond the calendar."""
    texts = pa.Array.from_buffers(pa.string(), 2, pa.array([b"a", b"\xff"]).buffers())
    pq.write_table(pa.table({"t": texts}), tmp_path / "a.parquet")
    assert [row.problem for row in rows_of(tmp_path / "a.parquet")] == [None, "not UTF-8 at byte 0"]
    pq.write_table(pa.table({"t": pa.array([0, 1 << 62], pa.timestamp("us"))}), tmp_path / "b.parquet")
    problem = "a time outside of the years 1 to 9999"
    assert [row.problem for row in rows_of(tmp_path / "b.parquet")] == [None, problem]


def test_types_of_the_files_of_a_directory_widen_or_are_named(tmp_path: Path) -> None:
    """Integers, floats and decimals, units of time; a text beside a number, a zone beside none are refused."""

    def write(name: str, **columns: pa.Array) -> None:
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")

    one, at = 1_714_557_600, "2024-05-01T10:00:00.000000Z"
    write(
        "2024-01",
        n=pa.array([1], pa.int32()),
        at=pa.array([one * 1000], pa.timestamp("ms", "UTC")),
        s=pa.array([None]),
    )
    write(
        "2024-02",
        at=pa.array([one * 10**6], pa.timestamp("us", "UTC")),
        n=pa.array([1 << 40]),
        s=pa.array(["x"]),
    )
    assert values_of(tmp_path, InputOptions("parquet")) == [
        {"n": 1, "at": at, "s": None},
        {"n": 1 << 40, "at": at, "s": "x"},
    ]
    write(
        "2024-03", at=pa.array([one * 10**6], pa.timestamp("us", "UTC")), n=pa.array(["1"]), s=pa.array(["x"])
    )
    says = f"{tmp_path}/2024-03.parquet: column n is string, and int32 in {tmp_path}/2024-01.parquet"
    assert refused(tmp_path / "*.parquet") == says
    write("2024-03", at=pa.array([one * 10**6], pa.timestamp("us")), n=pa.array([1]), s=pa.array(["x"]))
    assert "column at is timestamp[us], and timestamp[ms, tz=UTC] in " in refused(tmp_path / "*.parquet")
    write("2024-03", at=pa.array([one * 10**6], pa.timestamp("us", "UTC")), n=pa.array([1]), s=pa.array([1]))
    assert "column s is int64, and string in " in refused(tmp_path / "*.parquet")


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_column_that_one_file_lacks_is_named(tmp_path: Path, format_: str) -> None:
    """In a directory of either format; files that are named one by one keep their own columns."""
    for month, columns in (
        ("01", {"account": "B1", "delta": "5"}),
        ("02", {"account": "B1", "delta": "5", "fee": "1"}),
    ):
        file = tmp_path / f"2024-{month}.{format_}"
        if format_ == "csv":
            file.write_text(f"{','.join(columns)}\n{','.join(columns.values())}\n")
        else:
            pq.write_table(pa.table({name: [value] for name, value in columns.items()}), file)
    assert refused(tmp_path / f"*.{format_}") == (
        f"column fee is not in both: {tmp_path}/2024-02.{format_} has the columns account, delta, fee; "
        f"{tmp_path}/2024-01.{format_} has account, delta"
    )
    assert values_of(tmp_path / f"2024-02.{format_}") == [{"account": "B1", "delta": "5", "fee": "1"}]


def test_what_is_no_parquet_or_has_no_form_is_named(tmp_path: Path) -> None:
    """The file; the column and its type."""
    (tmp_path / "a.parquet").write_bytes(b"x" * 100)
    assert refused(tmp_path / "a.parquet").startswith(
        f"cannot read '{tmp_path}/a.parquet': Parquet magic bytes"
    )
    pq.write_table(pa.table({"t": pa.array([1], pa.duration("s"))}), tmp_path / "b.parquet")
    assert (
        refused(tmp_path / "b.parquet")
        == f"{tmp_path}/b.parquet: column t has the type duration[s], which has no form in JSON"
    )


def test_rows_of_csv_are_json_of_texts(tmp_path: Path) -> None:
    """Whole files and lines cut into ranges; a bad line by its number in both."""
    file = tmp_path / "a.csv"
    file.write_text('k,v\nä,"x""\\\n"\n"",\n')
    assert values_of(file) == [{"k": "ä", "v": 'x"\\\n'}, {"k": "", "v": None}]
    file.write_text("k,v\na,1\nb\n")
    for multi_line in (True, False):
        with pytest.raises(BadLine, match=r"a\.csv: line 3: 1 column, where the header has 2") as caught:
            rows_of(file, options=InputOptions(multi_line=multi_line))
        assert caught.value.details == {"path": str(file), "line": 3}


def test_a_row_of_csv_that_is_larger_than_a_message_is_named(tmp_path: Path) -> None:
    """By file and line; left out on request, as a time before 1970 is."""
    file = tmp_path / "f.csv"
    file.write_text(f"v,when\na,2024-05-01\n{'x' * MESSAGE_BYTES_MAX},\nb,1969-12-31\n")
    columns = MessageColumns(event_time="when")
    assert refused(file, columns) == f"{file}: line 3: larger than a message may be, 5,242,880 bytes"
    assert [row.problem and row.problem[:6] for row in rows_of(file, columns)] == [None, "larger", "when i"]


@pytest.mark.parametrize("multi_line", [True, False])
def test_a_field_of_csv_that_is_larger_than_a_message_is_named(tmp_path: Path, multi_line: bool) -> None:
    """By file and line, or left out; one of 200,000 bytes is taken."""
    file, large, fits = tmp_path / "f.csv", "x" * (MESSAGE_BYTES_MAX + 1), "y" * 200_000
    file.write_text(f"v,w\na,1\n{large},2\nb,{fits}\n")
    said = f"{file}: line 3: a field has more than 5,242,880 bytes"
    with pytest.raises(BadLine, match=re.escape(said)):
        rows_of(file, options=InputOptions(multi_line=multi_line))
    rows = rows_of(file, options=InputOptions(skip=True, multi_line=multi_line))
    assert [row.problem for row in rows] == [None, "a field has more than 5,242,880 bytes", None]
    assert json.loads(rows[2].value or b"")["w"] == fits


def test_the_lines_of_a_large_quoted_field_are_no_rows(tmp_path: Path) -> None:
    """The row behind the closing quote is the next one; without a closing quote the file ends in an error."""
    file, inside = tmp_path / "f.csv", "a,1\n" * (MESSAGE_BYTES_MAX // 4 + 1)
    file.write_text(f'v,w\n"{inside}",2\nb,3\n')
    assert [row.value for row in rows_of(file)] == [None, b'{"v":"b","w":"3"}']
    file.write_text(f'v,w\n"{inside}\nb,3\n')
    with pytest.raises(BadLine, match="line 2: the quote that begins here is never closed"):
        rows_of(file)
