"""Files -> a topic: what becomes of rows, and that all of them are stored or none."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import Store
from storage.errors import BadLine, InvalidValue
from storage.limits import MESSAGE_BYTES_MAX
from txnctl.files import input_parts
from txnctl.files.csv_rows import CsvDialect
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import MessageColumns
from txnctl.pipelines import ingest
from txnctl.pipelines.ingest import SkippedRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.needs_program("java")

DAY_MS = 86_400_000


def stored(store: Store, topic: str = "requests") -> list[tuple[bytes | None, object]]:
    return [(each.key, json.loads(each.value or b"null")) for each in store.reader(topic)]


def ingested(
    spark: SparkSession,
    paths: list[str],
    target: dict[str, str],
    columns: MessageColumns,
    options: InputOptions | None = None,
) -> ingest.Ingested:
    options = options or InputOptions()
    return ingest.ingest_files(spark, ingest.plan_files(paths, columns, options), target, columns, options)


def asked(path: str) -> dict[str, str]:
    return {"path": path, "topic": "requests"}


def test_rows_of_csv_become_json_with_their_key_and_time(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """Every value stays the text that it was; an empty one is null; the order of the file is kept."""
    store.create_topic("requests")
    file = tmp_path / "in [1] a.csv"
    file.write_text(
        'id,a.b,when\n1,"x,""y""",2024-05-01\n2,,2024-05-02T01:00:00+01:00\n3,1.10,1714608000001\n'
    )
    done = ingested(spark, [str(file)], asked(path), MessageColumns(key="id", event_time="when"))
    assert done == ingest.Ingested(messages=3, skipped=0)
    values = [
        {"id": "1", "a.b": 'x,"y"', "when": "2024-05-01"},
        {"id": "2", "a.b": None, "when": "2024-05-02T01:00:00+01:00"},
        {"id": "3", "a.b": "1.10", "when": "1714608000001"},
    ]
    assert stored(store) == [(b"1", values[0]), (b"2", values[1]), (b"3", values[2])]
    first = 19_844 * DAY_MS
    times = [each.event_time for each in store.reader("requests")]
    assert times == [first, first + DAY_MS, first + DAY_MS + 1]


def test_lines_of_json_are_stored_as_they_stand(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """To the last digit and blank; files come in the order in which they are named."""
    store.create_topic("requests")
    lines = ['{"id": 1, "delta": 1.10}', '{"delta":123456789012345678901234567890.10,"id":"b\'c"}']
    for name, line in zip("zy", lines, strict=True):
        (tmp_path / f"{name}.ndjson").write_text(f"{line}\n\n")
    paths = [str(tmp_path / f"{name}.ndjson") for name in "zy"]
    ingested(spark, paths, asked(path), MessageColumns(key="id"))
    assert [each.value for each in store.reader("requests")] == [line.encode() for line in lines]
    assert [each.key for each in store.reader("requests")] == [b"1", b"b'c"]


def test_a_line_of_json_ends_at_a_line_feed(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """A CR before LF belongs to the end; a CR inside is white space of JSON, and part of the value."""
    store.create_topic("requests")
    file = tmp_path / "a.ndjson"
    file.write_bytes(b'{"id":\r1}\r\n{"id":2}\r\n[3]\n')
    done = ingested(spark, [str(file)], asked(path), MessageColumns(key="id"), InputOptions(skip=True))
    assert done == ingest.Ingested(2, 1, (SkippedRows("not a JSON object", 1),))
    assert [each.value for each in store.reader("requests")] == [b'{"id":\r1}', b'{"id":2}']
    with pytest.raises(BadLine, match="line 3: not a JSON object"):
        ingested(spark, [str(file)], asked(path), MessageColumns(key="id"))


def test_parquet_keeps_bytes_and_a_column_may_be_the_value(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """A binary key and value come through byte for byte."""
    store.create_topic("requests")
    frame = spark.createDataFrame([(b"\xff\x00", bytearray(b"\x80v"))], "k binary, v binary")
    frame.write.parquet(str(tmp_path / "p.parquet"))
    ingested(spark, [str(tmp_path / "p.parquet")], asked(path), MessageColumns(key="k", value="v"))
    assert [(each.key, each.value) for each in store.reader("requests")] == [(b"\xff\x00", b"\x80v")]


@pytest.mark.parametrize(
    ("name", "text", "row", "problem"),
    [
        ("a.csv", "id,when\n1,\n\n\xe4,\n", 4, "it is not UTF-8 text; --encoding names another"),
        ("a.ndjson", '{"id": 1}\n{"id": 2, "when": "T10:15"}\n', 2, "when is not a time"),
        ("b.csv", "id,when\n1,2024-05-01\n2,20240501\n", 3, "when is a time in 1970, in milliseconds"),
        ("c.csv", "id,when\n1,\n2,1969-12-31\n", 3, "when is a time before 1970"),
        pytest.param(
            *("d.csv", f"id,when\n1,\n{'x' * MESSAGE_BYTES_MAX},\n", 3),
            f"larger than a message may be, {MESSAGE_BYTES_MAX:,} bytes",
            id="large",
        ),
    ],
)
def test_a_bad_row_is_named_and_nothing_is_stored(
    spark: SparkSession, store: Store, path: str, tmp_path: Path, name: str, text: str, row: int, problem: str
) -> None:
    """With the file and its number there; left out on request, and counted."""
    store.create_topic("requests")
    file = tmp_path / name
    file.write_text(text, encoding="latin-1")
    columns = MessageColumns(key="id", event_time="when")
    with pytest.raises(BadLine) as caught:
        ingested(spark, [str(file)], asked(path), columns)
    assert caught.value.message.startswith(f"{file}: line {row}: {problem}")
    assert stored(store) == []
    assert ingested(spark, [str(file)], asked(path), columns, InputOptions(skip=True)) == ingest.Ingested(
        1, 1, (SkippedRows(problem, 1),)
    )
    assert [key for key, _ in stored(store)] == [b"1"]


def test_the_rows_create_a_missing_topic(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """With the option, in the commit that stores them; a refused job leaves no topic."""
    file, creating = tmp_path / "a.csv", {**asked(path), "createTopic": "true"}
    file.write_text("id\n1\n2,x\n")
    with pytest.raises(BadLine):
        ingested(spark, [str(file)], creating, MessageColumns(key="id"))
    assert store.topics() == []
    file.write_text("id\n1\n2\n")
    ingested(spark, [str(file)], creating, MessageColumns(key="id"))
    assert [key for key, _ in stored(store)] == [b"1", b"2"]


def test_a_column_that_is_not_there_is_named(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """With those that are."""
    store.create_topic("requests")
    (tmp_path / "a.csv").write_text("id,delta\n1,2\n")
    with pytest.raises(InvalidValue, match="there is no column amount") as caught:
        ingested(spark, [str(tmp_path / "a.csv")], asked(path), MessageColumns(key="amount"))
    assert caught.value.hint == "The columns are id, delta."


def test_files_of_four_shapes_are_the_same_rows(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """Semicolons, Latin-1, columns in another order, quoted line ends; one directory, and lines cut into ranges."""
    rows = [("ä;1", 'x\n"y"'), ("", None), ("3", "")]

    def text(delimiter: str, names: str) -> str:
        lines = [delimiter.join(names)]
        for key, value in rows:
            fields = {"k": key, "v": value}
            cells = ['"' + (fields[name] or "").replace('"', '""') + '"' for name in names]
            lines.append(
                delimiter.join(
                    "" if fields[name] is None else cell for name, cell in zip(names, cells, strict=True)
                )
            )
        return "\r\n".join(lines)

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(text(",", "kv"), newline="")
    (tmp_path / "in" / "b.csv").write_text(text(",", "vk"), newline="")
    (tmp_path / "semicolon.csv").write_text(text(";", "kv"), newline="")
    (tmp_path / "latin.csv").write_text(text(",", "kv"), encoding="latin-1", newline="")
    store.create_topic("requests")
    for name, options in (
        ("in", InputOptions("csv")),
        ("semicolon.csv", InputOptions(dialect=CsvDialect(";"))),
        ("latin.csv", InputOptions(dialect=CsvDialect(None, "iso8859-1"))),
    ):
        done = ingested(spark, [str(tmp_path / name)], asked(path), MessageColumns(key="k"), options)
        assert done.skipped == 0
    expected = [(key.encode(), {"k": key, "v": value}) for key, value in rows]
    in_other_order = [(key.encode(), {"k": key, "v": value}) for key, value in rows]
    assert stored(store) == expected + in_other_order + expected + expected


def test_lines_of_a_large_file_are_shared_out(
    spark: SparkSession, store: Store, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without quoted line ends: every line once, in order; a quote that goes on is named by file and line."""
    monkeypatch.setattr(input_parts, "PART_BYTES", 1000)
    store.create_topic("requests")
    file = tmp_path / "a.csv"
    file.write_text("id,text\n" + "".join(f'{number},"{"x" * (number % 150)}"\n' for number in range(400)))
    split = InputOptions(multi_line=False)
    ingested(spark, [str(file)], asked(path), MessageColumns(key="id"), split)
    assert [key for key, _ in stored(store)] == [b"%d" % number for number in range(400)]
    with file.open("a") as more:
        more.write('400,"a\nb"\n')
    with pytest.raises(BadLine, match=r"a\.csv: line 40[23]: a quote is not closed on this line"):
        ingested(spark, [str(file)], asked(path), MessageColumns(key="id"), split)
    done = ingested(spark, [str(file)], asked(path), MessageColumns(key="id"))
    assert done.messages == 401


def test_a_quote_that_is_never_closed_ends_the_job(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """Whatever is asked for at bad rows: the rows behind it cannot be told apart."""
    store.create_topic("requests")
    file = tmp_path / "a.csv"
    file.write_text('id,text\n1,a\n2,"b\n3,c\n')
    for skip in (False, True):
        with pytest.raises(BadLine, match=r"a\.csv: line 3: the quote that begins here is never closed"):
            ingested(spark, [str(file)], asked(path), MessageColumns(key="id"), InputOptions(skip=skip))
    assert stored(store) == []


def test_files_below_a_directory_are_shared_out_in_order(
    spark: SparkSession, store: Store, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of JSON and rows of Parquet, cut into many tasks and gathered into few; also in a session of a zone."""
    monkeypatch.setattr(input_parts, "PART_BYTES", 2000)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    store.create_topic("requests")
    numbers = iter(range(1200))
    for name in ("a.jsonl", "sub/10:15:00.jsonl", "sub/deep/c.jsonl", "t1.jsonl", "t2.jsonl", "t3.jsonl"):
        file = tmp_path / "d" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        count = 2 if name[0] == "t" else 398
        file.write_text("".join(f'{{"n":{next(numbers)},"at":"2024-05-01"}}\n' for _ in range(count)))
    at = pa.array([datetime(2024, 5, 1)] * 400)  # noqa: DTZ001  a time without a zone
    pq.write_table(pa.table({"n": range(1200, 1600), "at": at}), tmp_path / "p.parquet", row_group_size=50)
    for name, format_ in (("d", "json"), ("p.parquet", "parquet")):
        columns, options = MessageColumns(key="n", event_time="at"), InputOptions(format_)
        ingested(spark, [str(tmp_path / name)], asked(path), columns, options)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = list(store.reader("requests"))
    assert [message.key for message in found] == [b"%d" % number for number in range(1600)]
    assert {message.event_time for message in found} == {19_844 * DAY_MS}
    assert json.loads(found[-1].value or b"") == {"n": 1599, "at": "2024-05-01T00:00:00.000000"}


def test_rows_are_counted_by_the_reason_for_leaving_them_out(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """The most frequent reason comes first."""
    store.create_topic("requests")
    (tmp_path / "a.csv").write_text("id,when\n1,2024-05-01\n2,soon\n3\n4,10:15\n")
    columns = MessageColumns(key="id", event_time="when")
    done = ingested(spark, [str(tmp_path / "a.csv")], asked(path), columns, InputOptions(skip=True))
    reasons = (
        SkippedRows("when is not a time", 2),
        SkippedRows("1 column, where the header has 2", 1),
    )
    assert done == ingest.Ingested(1, 3, reasons)
