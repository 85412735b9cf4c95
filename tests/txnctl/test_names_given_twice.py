"""A name that stands twice is refused at every door: options, JSON, headers of files, options of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.errors import BadLine, InvalidValue
from txnctl.commands.health.check_measures import thresholds
from txnctl.commands.pipeline.session import SparkOptions, session
from txnctl.files import input_parts
from txnctl.files.input_parts import InputOptions
from txnctl.files.message_rows import MessageColumns
from txnctl.spark.source.edges import parse_edge
from txnctl.spark.source.key_selection import parse_keys

TOPICS = ("orders",)

NDJSON = (
    b'{"value":"1","value":"2"}',
    b'{"value":"1","key":"a","key":"b"}',
    b'{"value":"1","properties":{"p":"1","p":"2"}}',
    b'{"value":"1","further":[{"n":1,"n":1}]}',
    b'{"value":"1","\\u0076alue":"2"}',
)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("produce", "new", "--create", "-m", "x", "-p", "a=1", "-p", "b=1", "-p", "a=2"), "--property: 'a'"),
        (("transactions", "begin", "--label", "a=1", "--label", "a=1"), "--label: 'a'"),
        (("transactions", "list", "--label", "a=1", "--label", "a=2"), "--label: 'a'"),
        (("transactions", "run", "--label", "a=1", "--label", "a=2", "--", "true"), "--label: 'a'"),
        (("pipeline", "sql", "SELECT 1", "--topic", "a=orders", "--table", "a"), "--topic, --table: 'a'"),
    ],
)
def test_a_name_of_an_option_stands_once(run: Any, words: tuple[str, ...], place: str) -> None:
    """Exit code 2, with option and name, and nothing is created."""
    outcome = run(*words)
    assert (outcome.status, outcome.out) == (2, ""), outcome
    assert f"{place} is given twice" in outcome.err, outcome
    assert run("topics", "list", "-o", "name").out == "orders\n"


def test_a_threshold_and_an_option_of_spark_stand_once() -> None:
    """A second threshold, or option of Spark, is refused before a store is opened or a JVM starts."""
    with pytest.raises(InvalidValue, match="--warn: 'lag' is given twice"):
        thresholds(("lag=1", "space=2G", "lag=7"), "--warn")
    options = SparkOptions({"master": None, "conf": [("spark.a", "1"), ("spark.a", "2")]})
    with pytest.raises(InvalidValue, match=r"--conf: 'spark\.a' is given twice"), session("sql", options):
        pass


@pytest.mark.parametrize("line", NDJSON)
def test_a_message_of_ndjson_has_a_name_once(run: Any, path: Path, line: bytes) -> None:
    """The line is named, on any level of the object; `--on-error skip` counts the line with the bad ones."""
    lines = b'{"value":"first"}\n' + line + b'\n{"value":"last"}\n'
    outcome = run("produce", "orders", "--input", "ndjson", stdin=lines)
    assert outcome.status == 2
    assert "line 2: '" in outcome.err
    assert "' is given twice" in outcome.err
    skipped = run("produce", "orders", "--input", "ndjson", "--on-error", "skip", "-o", "json", stdin=lines)
    assert (skipped.json["messages"], skipped.json["skipped"]) == (2, 1), skipped
    with Store.open(path, read_only=True) as store:
        assert [message.value for message in store.reader("orders")] == [b"first", b"first", b"last"]


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    "line", [b'{"key":"a","value":"1","value":"2"}', b'{"key":"a","key":"b","value":"1"}']
)
def test_a_row_of_ndjson_has_a_name_once(run: Any, line: bytes) -> None:
    """The import ends by line, and imports nothing."""
    outcome = run("tables", "import", "acc", "--create", stdin=b'{"key":"z","value":"0"}\n' + line + b"\n")
    assert outcome.status == 2
    assert "line 2: '" in outcome.err
    assert "' is given twice" in outcome.err
    assert run("tables", "list", "-o", "name").out == ""


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize(
    ("words", "header", "name"),
    [
        (("produce", "orders", "--input", "csv"), b"value,key,value", "value"),
        (("produce", "orders", "--input", "csv"), b"value,properties.p,properties.p", "properties.p"),
        (("tables", "import", "acc", "--input", "csv", "--create"), b"key,value,key", "key"),
    ],
)
def test_a_column_of_a_header_stands_once(run: Any, words: tuple[str, ...], header: bytes, name: str) -> None:
    """The header is named by its line, and the column by its name."""
    outcome = run(*words, stdin=header + b"\n1,2,3\n")
    assert outcome.status == 2
    assert f"line 1, the header: '{name}' is given twice" in outcome.err


@pytest.mark.parametrize("line", [b'{"n":1,"n":2}', b'{"n":{"a":1,"a":1}}'])
@pytest.mark.parametrize("columns", [MessageColumns(), MessageColumns(key="n")])
def test_a_row_of_a_file_has_a_name_once(tmp_path: Path, line: bytes, columns: MessageColumns) -> None:
    """File and line are named, or the row is skipped and counted, whether a column is taken or the whole row."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":0}\n' + line + b"\n")
    (part,) = input_parts.plan(str(path), columns, InputOptions(skip=True))
    kept = [row for row in input_parts.read(part, columns, InputOptions(skip=True)) if row.problem is None]
    assert [row.value for row in kept] == [b'{"n":0}']
    with pytest.raises(BadLine, match=r"a\.jsonl: line 2: '[na]' is given twice"):
        list(input_parts.read(part, columns, InputOptions()))


def test_a_topic_of_spark_stands_once() -> None:
    """Two names of one topic, and two members of an object, are refused by the option."""
    for twice in (
        '{"orders":"1:0","orders":"2:0"}',
        '{"orders":"1:0","persistent://public/default/orders":"2:0"}',
    ):
        with pytest.raises(InvalidValue, match=r"endingPosition: '.*orders' is given twice"):
            parse_edge({"endingPosition": twice}, "endingPosition", "endingTimestamp", "latest")
    with pytest.raises(InvalidValue, match="keys: 'base64' is given twice"):
        parse_keys({"keys": '[{"base64":"YQ==","base64":"Yg=="}]'})
