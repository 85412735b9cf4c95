"""What a task of a write does with its rows (no Spark, no store)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.errors import InvalidName, InvalidValue, MessageTooLarge
from storage.limits import ENTRY_MESSAGES_MAX, MESSAGE_BYTES_MAX
from storage.topic.batching import unpacked
from tests.model_runs import examples
from txnctl.spark.sink import task_writer
from txnctl.spark.sink.columns import SinkColumns, sink_columns
from txnctl.spark.sink.staged_file import StagedFile
from txnctl.spark.sink.staging import Staging, write_name

WRITE = write_name("0" * 16)
T = "persistent://public/default/t"
TYPES = {
    "value": pa.binary(),
    "key": pa.string(),
    "topic": pa.string(),
    "properties": pa.map_(pa.string(), pa.string()),
    "eventTime": pa.timestamp("us", tz="UTC"),
}
SPARK_TYPES = {
    "value": "binary", "key": "string", "topic": "string", "properties": "map<string,string>",
    "eventTime": "timestamp",
}  # fmt: skip


def sink(*names: str, topic: str | None = T, table: str | None = None) -> SinkColumns:
    return sink_columns([(name, SPARK_TYPES[name]) for name in names], topic, table)


def batch(**columns: list[Any]) -> pa.RecordBatch:
    arrays = [pa.array(values, TYPES[name]) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging.at(str(tmp_path))


def stage(staging: Staging, batches: Iterable[pa.RecordBatch], to: SinkColumns) -> StagedFile | None:
    return task_writer.stage_rows(batches, to, staging, task_writer.TaskAttempt(WRITE, 3, 7, "a" * 16))


def contents(staging: Staging, file: StagedFile | None, target: str = T) -> list[tuple[Any, ...]]:
    """Value, key, properties and event time of each message in order."""
    assert file is not None
    found = []
    for entry in staging.entries(file, target):
        columns = unpacked(entry)
        none = [None] * columns.count
        found += list(
            zip(
                columns.values, columns.keys or none, columns.properties or none, columns.event_times or none,
                strict=True,
            )
        )  # fmt: skip
    return found


class TestRows:
    """A row is the message that it says."""

    @given(
        rows=st.lists(
            st.tuples(
                st.none() | st.binary(max_size=9),
                st.none() | st.text(st.characters(codec="utf-8"), max_size=5),
                st.none()
                | st.dictionaries(st.text("abc", max_size=2), st.text("xyz", max_size=2), max_size=2),
                st.none() | st.integers(0, 1 << 45),
            ),
            min_size=1,
            max_size=40,
        ),
        cut=st.integers(1, 40),
    )
    @settings(
        max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_all_columns(self, staging: Staging, rows: list[Any], cut: int) -> None:
        """Value, key, properties and event time are stored in the order of the rows, however they are cut."""
        names = ("value", "key", "properties", "eventTime")
        batches = []
        for at in range(0, len(rows), cut):
            values, keys, properties, times = zip(*rows[at : at + cut], strict=True)
            maps = [None if each is None else list(each.items()) for each in properties]
            micros = [None if each is None else each * 1000 + 999 for each in times]
            batches.append(batch(value=list(values), key=list(keys), properties=maps, eventTime=micros))
        found = contents(staging, stage(staging, batches, sink(*names)))
        wanted = [
            (value, None if key is None else key.encode(), each or None, at) for value, key, each, at in rows
        ]
        assert [(value, key, each or None, at) for value, key, each, at in found] == wanted

    def test_columns_go_by_name(self, staging: Staging) -> None:
        """Their order does not matter."""
        file = stage(staging, [batch(key=["k"], value=[b"v"])], sink("key", "value"))
        assert contents(staging, file) == [(b"v", b"k", None, None)]

    def test_text_is_stored_as_utf8(self, staging: Staging) -> None:
        """A string column, of either Arrow type, becomes bytes."""
        for type_ in (pa.string(), pa.large_string()):
            rows = pa.RecordBatch.from_arrays([pa.array(["käse", None], type_)], names=["value"])
            file = stage(staging, [rows], sink_columns([("value", "string")], T, None))
            assert [value for value, *_ in contents(staging, file)] == ["käse".encode(), None]

    def test_no_rows_no_file(self, staging: Staging, tmp_path: Path) -> None:
        """A task without rows leaves nothing."""
        assert stage(staging, [batch(value=[])], sink("value")) is None
        assert stage(staging, [], sink("value")) is None
        assert list(tmp_path.iterdir()) == []

    def test_small_batches_fill_entries(self, staging: Staging) -> None:
        """Rows that come a few at a time become entries of many messages."""
        batches = (batch(value=[b"%d" % number]) for number in range(3000))
        file = stage(staging, batches, sink("value"))
        assert file is not None
        assert [entry.count for entry in staging.entries(file, T)] == [3000]

    def test_entries_are_bounded(self, staging: Staging) -> None:
        """Neither messages nor bytes of an entry exceed what the store takes."""
        rows = [batch(value=[b""] * (2 * ENTRY_MESSAGES_MAX + 1)), batch(value=[b"x" * 200_000] * 3)]
        file = stage(staging, rows, sink("value"))
        assert file is not None
        counts = [unpacked(entry).count for entry in staging.entries(file, T)]
        assert counts == [ENTRY_MESSAGES_MAX, ENTRY_MESSAGES_MAX, 1, 1, 1, 1]


class TestRouting:
    """The column topic says where a row goes."""

    @given(
        rows=st.lists(st.sampled_from(["t", "u", T, None, "persistent://a/b/c"]), min_size=1, max_size=60),
        cut=st.integers(1, 60),
        waiting=st.sampled_from([1, 100, 1 << 20]),
    )
    @settings(
        max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    def test_order_is_kept_in_each_topic(
        self,
        staging: Staging,
        monkeypatch: pytest.MonkeyPatch,
        rows: list[str | None],
        cut: int,
        waiting: int,
    ) -> None:
        """Rows of one topic keep their order; null means the topic of the option; short names are full ones."""
        monkeypatch.setattr(task_writer, "WAITING_BYTES_MAX", waiting)
        numbered = list(enumerate(rows))
        batches = [
            batch(value=[b"%d" % number for number, _ in part], topic=[topic for _, topic in part])
            for part in (numbered[at : at + cut] for at in range(0, len(rows), cut))
        ]
        file = stage(staging, batches, sink("value", "topic"))
        wanted: dict[str, list[bytes]] = {}
        for number, topic in numbered:
            full = {None: T, "t": T, "u": "persistent://public/default/u"}.get(topic, topic or T)
            wanted.setdefault(full, []).append(b"%d" % number)
        assert file is not None and file.rows == {topic: len(values) for topic, values in wanted.items()}
        for topic, values in wanted.items():
            assert [value for value, *_ in contents(staging, file, topic)] == values

    def test_a_row_without_a_topic(self, staging: Staging) -> None:
        """Where no option names a topic, a null is an error that names the row."""
        rows = [batch(value=[b"1"] * 2, topic=["t"] * 2), batch(value=[b"2"] * 2, topic=["t", None])]
        with pytest.raises(InvalidValue, match="row 4 of partition 3 names no topic"):
            stage(staging, rows, sink("value", "topic", topic=None))

    def test_a_row_with_a_bad_topic(self, staging: Staging) -> None:
        """A name that no topic can have is an error that names the row."""
        with pytest.raises(InvalidName, match=r"row 2 of partition 3: '\.\./etc' is not"):
            stage(staging, [batch(value=[b"", b""], topic=["t", "../etc"])], sink("value", "topic"))


class TestRefusals:
    """A row that cannot be stored is named, and nothing of its task stays."""

    def refused(
        self, staging: Staging, error: type[Exception], match: str, rows: Any, to: SinkColumns
    ) -> None:
        good = batch(**{name: values[:1] for name, values in rows.items()})
        with pytest.raises(error, match=match):
            stage(staging, [good, batch(**rows)], to)

    def test_a_row_too_large(self, staging: Staging, tmp_path: Path) -> None:
        """The error has the number of the row and its size; the file is gone."""
        rows = {"value": [b"a", b"b", b"x" * (MESSAGE_BYTES_MAX + 1)]}
        self.refused(
            staging, MessageTooLarge, r"row 4 of partition 3 .* 5,242,881 bytes", rows, sink("value")
        )
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_a_property_without_a_value(self, staging: Staging) -> None:
        """Properties are text: a null among them is refused."""
        rows = {"value": [b"a", b"b"], "properties": [[("n", "v")], [("n", None)]]}
        self.refused(staging, InvalidValue, "row 3 of partition 3 .* text", rows, sink("value", "properties"))

    def test_a_time_before_1970(self, staging: Staging) -> None:
        """Event times are milliseconds since 1970."""
        rows = {"value": [b"a", b"b"], "eventTime": [0, -1000]}
        self.refused(
            staging, InvalidValue, "row 3 of partition 3 .* since 1970", rows, sink("value", "eventTime")
        )

    @pytest.mark.parametrize("key", [None, "", "k" * 401])
    def test_a_key_that_a_table_does_not_take(self, staging: Staging, key: str | None) -> None:
        """A table's key has 1 to 400 bytes."""
        rows = {"key": ["k", key], "value": [b"a", b"b"]}
        to = sink("key", "value", topic=None, table="accounts")
        self.refused(staging, InvalidValue, "row 3 of partition 3 .* 1 to 400 bytes", rows, to)


class TestColumns:
    """Which columns a write takes."""

    @pytest.mark.parametrize(
        ("fields", "topic", "table", "message"),
        [
            ([("key", "binary")], T, None, "there is no column value, which a topic needs"),
            ([("value", "binary")], None, "accounts", "there is no column key, which a table needs"),
            ([("value", "binary"), ("ledgerId", "bigint")], T, None, "a topic takes no column ledgerId"),
            (
                [("key", "binary"), ("value", "binary"), ("topic", "string")],
                None,
                "a",
                "a table takes no column topic",
            ),
            ([("value", "bigint")], T, None, "column value is bigint; a topic takes binary or string"),
            ([("value", "binary"), ("eventTime", "bigint")], T, None, "column eventTime is bigint"),
            ([("value", "binary"), ("value", "binary")], T, None, "column value is selected twice"),
            ([("value", "binary")], None, None, "the write has no target"),
        ],
    )
    def test_what_is_refused(
        self, fields: list[tuple[str, str]], topic: str | None, table: str | None, message: str
    ) -> None:
        """A missing, unknown, doubled or wrongly typed column is an error that names it and says what to do."""
        with pytest.raises(InvalidValue, match=message) as caught:
            sink_columns(fields, topic, table)
        assert caught.value.hint

    def test_topics_by_row_alone(self) -> None:
        """A column topic is enough to say where rows go."""
        assert sink("value", "topic", topic=None).index_of == {"value": 0, "topic": 1}


def test_tasks_do_without_lmdb(tmp_path: Path) -> None:
    """All that a task does runs where lmdb cannot be imported."""
    program = """
import sys
sys.modules["lmdb"] = None
import pyarrow as pa
from txnctl.spark.sink import task_writer
from txnctl.spark.sink.columns import sink_columns
from txnctl.spark.sink.staging import Staging
rows = pa.RecordBatch.from_arrays([pa.array([b"1", b"2"])], names=["value"])
to = sink_columns([("value", "binary")], "persistent://public/default/t", None)
file = task_writer.stage_rows([rows], to, Staging.at(sys.argv[1]), task_writer.TaskAttempt("write-" + "0" * 16, 0, 0, "0" * 16))
print(file.count)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("2", 0), done.stderr
