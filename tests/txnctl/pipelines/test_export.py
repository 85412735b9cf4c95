"""A topic or a table -> files, which are read back to the very bytes."""

from __future__ import annotations

import csv
import io
import json
import os
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from storage import Store
from storage.errors import AlreadyExists, InvalidValue
from txnctl.input.message_lines import parse
from txnctl.pipelines import export

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.needs_program("java")

VALUES = [b"text", b"", None, b"\xff\x00\xfe", 'quote " and \\ , \n line ü \x00'.encode(), b" blank "]
KEYS = [b"k", None, b"\xc3", b"", b"a,b", "ž".encode()]
PROPERTIES = [{"a": 'b"c'}, {}, {}, {}, {}, {}]


@pytest.fixture
def messages(spark: SparkSession, store: Store, path: str) -> DataFrame:
    """A topic of awkward messages, as Spark reads it."""
    store.create_topic("orders")
    with store.create_producer("orders") as producer:
        producer.send_batch(
            VALUES,
            keys=KEYS,
            properties=PROPERTIES,
            event_times=[7, *[None] * 5],
            deliver_at=[9, *[None] * 5],
        )
    return export.read_topic(spark, {"path": path, "topic": "orders"})


def text_of(directory: Path) -> str:
    """What the files of a directory hold together."""
    return "".join(file.read_bytes().decode() for file in sorted(directory.glob("part-*")))


def test_json_is_what_produce_reads(messages: DataFrame, tmp_path: Path) -> None:
    """Values, keys, properties and times come back: null, empty, and bytes that are no text."""
    assert export.export_rows(messages, str(tmp_path / "out"), "json") == len(VALUES)
    lines = text_of(tmp_path / "out").encode().split(b"\n")[:-1]
    read = parse(lines, 1, skip_bad=False)
    assert read.errors == []
    assert list(read.values) == VALUES
    assert list(read.keys or []) == KEYS
    assert [each or {} for each in read.properties or []] == PROPERTIES
    assert list(read.event_times or []) == [7, *[None] * 5]
    assert list(read.delivery_times or []) == [9, *[None] * 5]
    first = json.loads(lines[0])
    assert first["messageId"] == "1:0:0"
    assert first["publishTimeAt"].endswith("Z")


@pytest.fixture
def far_east(spark: SparkSession) -> Iterator[None]:
    """A session whose zone is not UTC."""
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield
    spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.usefixtures("far_east")
def test_times_are_utc_in_a_session_of_another_zone(
    messages: DataFrame, store: Store, tmp_path: Path
) -> None:
    """JSON and CSV name the same instant as the message, with a `Z`."""
    published = next(iter(store.reader("orders"))).publish_time
    text = (
        datetime.fromtimestamp(published / 1000, UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
    export.export_rows(messages, str(tmp_path / "json"), "json")
    first = json.loads(text_of(tmp_path / "json").splitlines()[0])
    assert (first["publishTimeAt"], first["publishTimeMs"]) == (text, published)
    export.export_rows(messages, str(tmp_path / "csv"), "csv")
    row = next(csv.DictReader(io.StringIO(text_of(tmp_path / "csv"), newline="")))
    assert (row["publishTime"], row["eventTime"]) == (text, "1970-01-01T00:00:00.007Z")


def test_csv_has_text_or_base64(messages: DataFrame, tmp_path: Path) -> None:
    """As `tables export` has them: of value and valueBase64 one holds something, or the value is empty or null."""
    export.export_rows(messages, str(tmp_path / "out"), "csv")
    rows = list(csv.DictReader(io.StringIO(text_of(tmp_path / "out"), newline="")))

    def read(row: dict[str, str]) -> bytes:
        return b64decode(row["valueBase64"]) if row["valueBase64"] else row["value"].encode()

    assert [read(row) for row in rows] == [value or b"" for value in VALUES]


def test_rows_of_a_table_are_what_tables_import_reads(
    spark: SparkSession, store: Store, path: str, tmp_path: Path
) -> None:
    """An object a row, with its version."""
    store.create_table("accounts")
    version = store.table("accounts").put(b"B1", b"1.00")
    store.table("accounts").put(b"\xff", b"\xfe")
    rows = export.read_topic(spark, {"path": path, "table": "accounts"})
    export.export_rows(rows, str(tmp_path / "out"), "json", max_files=1)
    first, second = map(json.loads, text_of(tmp_path / "out").splitlines())
    assert first == {"value": "1.00", "key": "B1", "version": str(version)}
    assert (second["keyBase64"], second["valueBase64"], "key" in second) == ("/w==", "/g==", False)


def test_parquet_has_the_columns_as_they_are(
    spark: SparkSession, messages: DataFrame, tmp_path: Path
) -> None:
    """Reading it gives the same rows."""
    export.export_rows(messages, str(tmp_path / "out"), "parquet")
    back = spark.read.parquet(str(tmp_path / "out"))
    assert back.schema == messages.schema
    assert back.orderBy("batchIndex").collect() == messages.orderBy("batchIndex").collect()


def test_nothing_is_replaced_unasked_and_nothing_half_done_is_left(
    spark: SparkSession, messages: DataFrame, tmp_path: Path
) -> None:
    """A destination that is there is an error, a failed export leaves it as it was, --overwrite replaces it whole."""
    from pyspark.sql import functions as f

    place = tmp_path / "out"
    place.mkdir()
    (place / "mine").write_text("")
    with pytest.raises(AlreadyExists):
        export.export_rows(messages, str(place), "json")
    failing = messages.withColumn("txnId", f.raise_error(f.lit("no")).cast("string"))
    with pytest.raises(Exception, match="no"):
        export.export_rows(failing, str(place), "json", overwrite=True)
    assert os.listdir(tmp_path / "out") == ["mine"]
    assert [each.name for each in tmp_path.iterdir() if "partial" in each.name] == []
    export.export_rows(messages, str(place), "json", overwrite=True)
    assert not (place / "mine").exists()
    assert (place / "_SUCCESS").exists()


def test_a_directory_that_cannot_be_put_in_place_leaves_the_one_before(
    messages: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a different host are none here; they are written in a directory of this user alone, as a stranger may
    have put links beside the place.
    """
    place, write = tmp_path / "new" / "out", export._write
    written: list[Path] = []

    def and_lose(frame: Any, uri: str, *rest: Any) -> None:
        written.append(Path(uri.removeprefix("file://")))
        write(frame, uri, *rest)
        assert written[-1].parent.stat().st_mode & 0o777 == 0o700
        if place.exists():
            written[-1].rename(tmp_path / "lost")

    monkeypatch.setattr(export, "_write", and_lose)
    export.export_rows(messages, str(place), "json")
    files = sorted(os.listdir(place))
    with pytest.raises(InvalidValue, match="were written on a different host"):
        export.export_rows(messages, str(place), "json", overwrite=True)
    assert sorted(os.listdir(place)) == files
    assert os.listdir(place.parent) == ["out"]


def test_what_came_to_the_destination_meanwhile_stays(
    messages: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --overwrite nothing is ever removed, however late it came."""
    place, write = tmp_path / "out", export._write

    def slowly(*arguments: Any) -> None:
        write(*arguments)
        place.mkdir()
        (place / "theirs").touch()

    monkeypatch.setattr(export, "_write", slowly)
    with pytest.raises(AlreadyExists):
        export.export_rows(messages, str(place), "json")
    assert os.listdir(place) == ["theirs"]
    assert [each.name for each in tmp_path.iterdir() if "partial" in each.name] == []
