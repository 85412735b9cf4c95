"""What is printed: harmless text, JSON, tables, numbers and times for people, messages out and in again."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import sys
import termios
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import example, given, strategies as st

from storage import Store
from storage.errors import BadLine
from storage.values.timestamps import both, rfc3339
from storage.values.txn_id import TxnID
from storage.values.txn_state import TransactionState
from txnctl.output import human, json_text, render
from txnctl.output.escape import printable, printable_bytes, printable_row
from txnctl.output.field import Field, heading_of, undeclared
from txnctl.output.message_lines import Parsed, parse
from txnctl.output.messages import (
    DELIVERED_FIELDS,
    MESSAGE_FIELDS,
    entry_lines,
    message_lines,
    message_row,
)
from txnctl.output.progress import ProgressLine
from txnctl.output.timestamp import clock_time, milliseconds

CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))] + list(
    "\u202a\u202e\u2066\u2069\u2028\u2029"
)


class TestEscape:
    """Stored data can never drive a terminal."""

    @given(st.text())
    def test_nothing_that_acts_remains(self, text: str) -> None:
        """Whatever the text, no control character, override or surrogate is left."""
        safe = printable(text)
        assert not set(safe) & set(CONTROLS)
        safe.encode()

    def test_each_control_is_written_out(self) -> None:
        """So that a reader sees that it is there."""
        assert printable("\x1b[2J\n\t\x9b\u202e\x7f") == "\\x1b[2J\\n\\t\\x9b\\u202e\\x7f"
        assert printable("\ud800") == "\\ud800"
        assert printable("\U000e0001") == "\\U000e0001"

    @pytest.mark.parametrize(
        "text", ["", "plain", "Příbram čeština", "日本語", "a\\n", "100 %", "\u3000", "\xa0", "😀"]
    )
    def test_text_stays_text(self, text: str) -> None:
        """Other alphabets and other spaces do nothing."""
        assert printable(text) == text

    def test_bytes_that_are_no_text(self) -> None:
        """They are shown as bytes."""
        assert printable_bytes(b"ok\xff\x1b") == "ok\\xff\\x1b"

    def test_rows_are_copied_to_the_depths(self) -> None:
        """Names in maps too."""
        row = {"a": "\x1b", "b": [{"\x07": "\x07"}], "c": 5, "d": None}
        assert printable_row(row) == {"a": "\\x1b", "b": [{"\\x07": "\\x07"}], "c": 5, "d": None}
        assert row["a"] == "\x1b"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class TestJson:
    """One valid document, whatever is in the row."""

    @given(JSON_VALUES)
    def test_every_value_comes_back(self, value: object) -> None:
        """In both layouts, and neither can drive a terminal."""
        for text in (json_text.one_line(value), json_text.indented(value)):
            assert json.loads(text) == value
            assert not set(text) & (set(CONTROLS) - {"\n"})
            text.encode()
        assert "\n" not in json_text.one_line(value)

    def test_layout(self) -> None:
        """Two spaces a level; what is empty stays on its line."""
        assert json_text.indented({"a": [1, {"b": {}}], "c": []}) == (
            '{\n  "a": [\n    1,\n    {\n      "b": {}\n    }\n  ],\n  "c": []\n}'
        )
        assert json_text.one_line({"a": [1, True, None], "b": "č"}) == '{"a":[1,true,null],"b":"č"}'

    def test_values_of_the_engine_are_strings(self) -> None:
        """Positions and ids are tuples inside, strings outside."""
        from storage.values.position import MessageId, Position

        row = {"at": Position(12, 4471), "id": MessageId(1, 0, 3), "txn": TxnID(42)}
        assert json_text.one_line(row) == '{"at":"12:4471","id":"1:0:3","txn":"0:42"}'
        assert json.loads(json_text.indented(row)) == {"at": "12:4471", "id": "1:0:3", "txn": "0:42"}

    def test_what_json_cannot_say_is_null_or_a_bug(self) -> None:
        """Unknown is null; bytes have fields of their own."""
        assert json_text.one_line([float("nan"), float("inf")]) == "[null,null]"
        with pytest.raises(TypeError):
            json_text.one_line({"value": b"x"})


class TestHuman:
    """Numbers at three in the morning."""

    @pytest.mark.parametrize(
        ("ms", "text"),
        [(0, "0ms"), (340, "340ms"), (2_000, "2s"), (59_999, "59s"), (60_000, "1m00s"), (2_818_000, "46m58s"),
         (768_000, "12m48s"), (3_600_000, "1h00m"), (86_399_999, "23h59m"), (86_400_000, "1d00h"),
         (100 * 86_400_000, "100d00h"), (-2_000, "-2s"), (None, "-")],
    )  # fmt: skip
    def test_durations(self, ms: int | None, text: str) -> None:
        """The two largest units, never rounded up."""
        assert human.duration(ms) == text

    @pytest.mark.parametrize(
        ("size", "text"),
        [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (8_808_038, "8.4 MiB"), (1_048_575, "1.0 MiB"),
         (5 << 40, "5.0 TiB"), (1 << 70, "1,048,576.0 PiB"), (None, "-")],
    )  # fmt: skip
    def test_sizes(self, size: int | None, text: str) -> None:
        """Units of 1,024, one decimal."""
        assert human.size(size) == text

    def test_counts_and_plurals(self) -> None:
        """Thousands are parted."""
        assert human.count(5688) == "5,688"
        assert human.count(None) == "-"
        assert human.plural(1, "message") == "1 message"
        assert human.plural(5688, "message") == "5,688 messages"
        assert human.plural(2, "entry", "entries") == "2 entries"


class TestTimestamps:
    """RFC 3339 in UTC, and back."""

    @given(st.integers(0, 253_402_300_799_999))
    @example(0)
    @example(253_402_300_799_999)
    def test_every_instant_comes_back(self, time_ms: int) -> None:
        """To the millisecond."""
        text = rfc3339(time_ms)
        assert text is not None
        assert datetime.fromisoformat(text).astimezone(UTC).year >= 1970
        assert milliseconds(text) == time_ms
        assert milliseconds(str(time_ms)) == time_ms

    def test_forms(self) -> None:
        """As the contract writes them."""
        assert rfc3339(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
        assert clock_time(1_700_000_000_123) == "22:13:20Z"
        assert both("begin", 5) == {"beginAt": "1970-01-01T00:00:00.005Z", "beginMs": 5}
        assert both("end", None) == {"endAt": None, "endMs": None}
        assert rfc3339(-1) is None
        assert rfc3339(1 << 62) is None


FIELDS = (
    Field("topic", "id", "The topic."),
    Field("msgCount", "integer", "Messages.", heading="MESSAGES"),
    Field("size", "size", "Bytes."),
    Field("ageMs", "duration", "Age.", heading="AGE"),
    Field("labels", "map", "Labels."),
    Field("exactMs", "timeMs", "The same as an integer.", heading=""),
)
ROWS: list[dict[str, Any]] = [
    {
        "topic": "orders\x1b",
        "msgCount": 5688,
        "size": 8_808_038,
        "ageMs": 2_818_000,
        "labels": {"a": "b"},
        "exactMs": 1,
    },
    {"topic": "b", "msgCount": None, "size": 0, "ageMs": 0, "labels": {}, "exactMs": 2},
]


class TestRendering:
    """Table and JSON come from the same rows."""

    def test_a_table_is_aligned_and_harmless(self) -> None:
        """Numbers to the right, unknown is a dash."""
        assert "".join(render.many(ROWS, "table", FIELDS, "topic", None)) == (
            "TOPIC       MESSAGES     SIZE     AGE  LABELS\n"
            "orders\\x1b     5,688  8.4 MiB  46m58s  a=b\n"
            "b                  -      0 B     0ms  -\n"
        )

    def test_one_thing_is_a_line_a_field(self) -> None:
        """The headings in small letters."""
        assert render.one(ROWS[0], "table", FIELDS, "topic", None) == (
            "topic     orders\\x1b\nmessages  5,688\nsize      8.4 MiB\nage       46m58s\nlabels    a=b\n"
        )

    def test_json_is_an_array_or_an_object(self) -> None:
        """An empty list is an array too."""
        assert json.loads("".join(render.many(ROWS, "json", FIELDS, "topic", None))) == ROWS
        assert json.loads(render.one(ROWS[0], "json", FIELDS, "topic", None)) == ROWS[0]
        assert "".join(render.many([], "json", FIELDS, "topic", None)) == "[]\n"

    def test_ndjson_is_an_object_a_line(self) -> None:
        """Also of one thing; of none, nothing."""
        text = "".join(render.many(ROWS, "ndjson", FIELDS, "topic", None))
        assert [json.loads(line) for line in text.splitlines()] == ROWS
        assert json.loads(render.one(ROWS[0], "ndjson", FIELDS, "topic", None)) == ROWS[0]
        assert "".join(render.many([], "ndjson", FIELDS, "topic", None)) == ""

    def test_names_are_alone_on_their_lines(self) -> None:
        """For `xargs`."""
        assert "".join(render.many(ROWS, "name", FIELDS, "topic", None)) == "orders\\x1b\nb\n"

    def test_an_empty_table_is_nothing(self) -> None:
        """No heading over nothing: scripts count lines."""
        assert "".join(render.many([], "table", FIELDS, "topic", None)) == ""

    def test_a_layout_of_its_own_gets_harmless_rows(self) -> None:
        """Text or lines; what it adds itself, such as colours, stays."""
        text = render.one(
            ROWS[0], "table", FIELDS, "topic", lambda row: [f"\x1b[1m{row['topic']}\x1b[0m", "x"]
        )
        assert text == "\x1b[1morders\\x1b\x1b[0m\nx\n"
        assert (
            "".join(render.many(ROWS, "table", FIELDS, "topic", lambda rows: rows[0]["topic"]))
            == "orders\\x1b\n"
        )

    def test_headings_come_from_names(self) -> None:
        """Pulsar's names, readable."""
        assert heading_of("maxReadPosition") == "MAX READ POSITION"
        assert undeclared({"topic": 1, "other": 2}, FIELDS) == {"other"}


class TestFolding:
    """A table on a terminal that is narrower than the table."""

    FIELDS = (
        Field("messageId", "id", "Its id."),
        Field("label", "text", "What it is for."),
        Field("bytes", "size", "How large.", heading="SIZE"),
        Field("labels", "map", "More."),
    )
    ROWS: ClassVar[list[dict[str, Any]]] = [
        {"messageId": "12:4471:" + "3" * 30, "label": "settles what was booked on the day before", "bytes": 5,
         "labels": {"job": "nightly", "host": "a-name-without-a-blank-that-is-long"}},
        {"messageId": "1:0", "label": "short", "bytes": None, "labels": {}},
    ]  # fmt: skip

    def lines(self, width: int | None) -> list[str]:
        return "".join(render.many(self.ROWS, "table", self.FIELDS, "messageId", None, width)).splitlines()

    @pytest.mark.parametrize("width", [None, 160, 500])
    def test_what_fits_is_a_line_a_row(self, width: int | None) -> None:
        """And what goes elsewhere than to a terminal, however wide it is."""
        assert self.lines(width) == self.lines(None)
        assert len(self.lines(width)) == 3

    @pytest.mark.parametrize("width", [100, 110, 120])
    def test_long_texts_are_folded_in_their_columns(self, width: int) -> None:
        """All of a text is there, in its own column; an id, which is copied, stays in one piece."""
        lines = self.lines(width)
        assert max(map(len, lines)) <= width
        assert sum("12:4471:" + "3" * 30 in line for line in lines) == 1
        at, end = lines[0].index("LABEL"), lines[0].index("SIZE")
        column = [line[at:end].strip() for line in lines[1:]]
        assert " ".join(filter(None, column)) == "settles what was booked on the day before short"
        labels = lines[0].index("LABELS")
        assert "".join("".join(line[labels:].split()) for line in lines[1:-1]) == (
            "job=nightly,host=a-name-without-a-blank-that-is-long"
        )

    def test_what_cannot_be_made_to_fit_stays_readable(self) -> None:
        """A column is never narrower than its heading, nor than 20."""
        assert max(map(len, self.lines(10))) > 80

    @pytest.mark.parametrize(("width", "lines"), [(70, 6), (200, 3)])
    def test_the_width_is_that_of_the_terminal(self, tmp_path: Path, width: int, lines: int) -> None:
        """As the kernel knows it."""
        Store.create(tmp_path / "s")
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
            # Not execv: readline, once it is loaded, puts a COLUMNS where os.environ does not see it.
            environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
            words = ["-m", "txnctl", "store", "config", "--store", str(tmp_path / "s")]
            os.execve(sys.executable, [sys.executable, *words], environ)
        seen = b""
        with suppress(OSError):
            while got := os.read(terminal, 1000):
                seen += got
        os.close(terminal)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        printed = seen.decode().splitlines()
        assert len(printed) == lines
        assert max(map(len, printed)) <= width


class TestProgress:
    """A line on a terminal, nothing anywhere else."""

    def test_silent_where_nobody_watches(self, capsys: pytest.CaptureFixture[str]) -> None:
        """No bar when redirected."""
        with ProgressLine("Verify", 10, "pages", watched=False) as bar:
            for _ in range(10):
                bar.advance()
        assert capsys.readouterr() == ("", "")

    def test_silent_in_the_first_second(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What is done at once needs no bar."""
        with ProgressLine("Verify", 10, "pages", watched=True) as bar:
            bar.advance(10)
        assert capsys.readouterr() == ("", "")

    def test_drawn_after_a_second_and_wiped_at_the_end(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On standard error alone."""
        now = [0.0]
        monkeypatch.setattr("txnctl.output.progress.monotonic", lambda: now[0])
        with ProgressLine("Verify", 2_900, "pages", watched=True) as bar:
            now[0] = 10.0
            bar.advance(1_200)
        out, err = capsys.readouterr()
        assert out == ""
        assert err == "\rVerify  41 %  1,200 of 2,900 pages  120/s  14s left\x1b[K\r\x1b[K"

    def test_without_a_total(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It says what is done and how fast."""
        monkeypatch.setattr("txnctl.output.progress.monotonic", lambda: 0.0)
        bar = ProgressLine("Produce", None, "messages", watched=False)
        bar.advance(500)
        assert bar.line(2.0) == "Produce  500 messages  250/s"


class StoredEntry:
    """The columns of an entry, as the engine hands them out."""

    def __init__(self, values: list[bytes | None], **given: Any) -> None:
        self.ledger_id, self.entry_id = 12, 4471
        self.count = len(values)
        self.values = values
        self.keys = given.get("keys")
        self.properties = given.get("properties")
        self.event_times = given.get("event_times")
        self.sequence_ids = range(100, 100 + len(values))
        self.publish_time = 1_700_000_000_123
        self.producer_name = given.get("producer_name", "txnctl-7")
        self.epoch = given.get("epoch", -1)
        self.txn_id = given.get("txn_id")
        self.txn_state = given.get("txn_state")

    def message_id(self, index: int) -> Any:
        """The id of one of its messages."""
        from storage.values.position import MessageId

        return MessageId(12, 4471, index if self.count > 1 else -1)

    def message(self, index: int) -> Any:
        """One of its messages."""
        from storage.topic.message import Message

        return Message(self, index, "orders", 3)  # type: ignore[arg-type]


def texts(values: list[bytes | None]) -> list[bytes]:
    """A whole entry on one line each."""
    return entry_lines(StoredEntry(values)).splitlines(keepends=True)  # type: ignore[arg-type]


BYTES = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from([b"", b"\x7f", b"\\", b'"', b"\n", b"\\u007f", b"\xff", b"null", "\u2028".encode()]),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@st.composite
def entries(draw: st.DrawFn) -> StoredEntry:
    """Entries of any size and content; columns there or not."""
    values = draw(st.lists(st.none() | BYTES, min_size=1, max_size=6))
    count = len(values)
    return StoredEntry(
        values,
        keys=draw(st.none() | st.lists(st.none() | BYTES, min_size=count, max_size=count)),
        properties=draw(
            st.none()
            | st.lists(st.none() | st.dictionaries(TEXT, TEXT, max_size=3), min_size=count, max_size=count)
        ),
        event_times=draw(
            st.none() | st.lists(st.none() | st.integers(0, 2**53), min_size=count, max_size=count)
        ),
    )


def same_column(given_column: list[Any] | None, parsed: list[Any] | None, count: int) -> bool:
    """Equal, where nothing, null and an empty map are all absence."""
    return [each or None for each in given_column or [None] * count] == [
        each or None for each in parsed or [None] * count
    ]


class TestMessages:
    """`consume -o ndjson | produce --input ndjson` is the identity."""

    def test_the_fields_of_a_message(self) -> None:
        """All of them, in order, as `-o help` lists them."""
        entry = StoredEntry(
            [b"+100", None],
            keys=[b"B2", b""],
            properties=[{"a": "b"}, None],
            event_times=[1, None],
            epoch=7,
            txn_id=TxnID(42),
            txn_state=TransactionState.OPEN,
        )
        first, second = [json.loads(line) for line in entry_lines(entry).splitlines()]  # type: ignore[arg-type]
        shared = {
            "publishTimeAt": "2023-11-14T22:13:20.123Z",
            "publishTimeMs": 1_700_000_000_123,
            "producerName": "txnctl-7",
            "epoch": 7,
            "txnId": "0:42",
            "txnState": "OPEN",
        }
        assert first == {
            "messageId": "12:4471:0", "value": "+100", "key": "B2", "properties": {"a": "b"}, "eventTimeMs": 1,
            "sequenceId": 100, **shared,
        }  # fmt: skip
        assert second == {
            "messageId": "12:4471:1", "value": None, "key": "", "properties": {}, "eventTimeMs": None,
            "sequenceId": 101, **shared,
        }  # fmt: skip
        assert list(first) == [field.name for field in MESSAGE_FIELDS if "Base64" not in field.name]

    def test_a_message_alone_in_its_entry_has_no_batch_index(self) -> None:
        """And nothing that is unknown is 0."""
        (line,) = texts([b"x"])
        row = json.loads(line)
        assert row["messageId"] == "12:4471"
        assert (row["epoch"], row["txnId"], row["txnState"], row["key"]) == (None, None, None, None)

    def test_bytes_that_are_no_text_go_as_base64(self) -> None:
        """`value` is absent then; null is not "" and neither is absent."""
        rows = [json.loads(line) for line in texts([b"\xff\x00", b"", None])]
        assert (rows[0]["valueBase64"], "value" in rows[0]) == ("/wA=", False)
        assert (rows[1]["value"], "valueBase64" in rows[1]) == ("", False)
        assert (rows[2]["value"], "valueBase64" in rows[2]) == (None, False)

    @given(entries())
    def test_what_goes_out_comes_back(self, entry: StoredEntry) -> None:
        """Value, key, properties, event time, null, binary."""
        lines = entry_lines(entry).split(b"\n")[:-1]  # type: ignore[arg-type]
        assert len(lines) == entry.count
        parsed = parse(lines)
        assert not parsed.errors
        assert parsed.values == entry.values
        assert (parsed.keys or [None] * entry.count) == (entry.keys or [None] * entry.count)
        assert same_column(entry.properties, parsed.properties, entry.count)
        assert (parsed.event_times or [None] * entry.count) == (entry.event_times or [None] * entry.count)

    @given(entries(), st.booleans())
    def test_every_way_of_printing_says_the_same(self, entry: StoredEntry, terminal: bool) -> None:
        """A batch at a time, a message at a time, as a row; harmless on a terminal."""
        batch = entry_lines(entry, terminal=terminal).split(b"\n")[:-1]  # type: ignore[arg-type]
        for index, line in enumerate(batch):
            row = json.loads(line)
            assert row == message_row(entry.message(index))
            single = message_lines([entry.message(index)], terminal=terminal)
            assert (
                json.loads(single)
                == row | {"redeliveryCount": 3}
                == message_row(entry.message(index), delivered=True)
            )
            assert not undeclared(json.loads(single), DELIVERED_FIELDS)
            if terminal:
                assert not set((line + single).decode()) & (set(CONTROLS) - {"\n"})

    @given(st.lists(entries(), max_size=3))
    def test_messages_of_several_entries_at_once(self, several: list[StoredEntry]) -> None:
        """As a consumer is handed them: each line is that of the message alone."""
        messages = [entry.message(index) for entry in several for index in range(entry.count)]
        assert message_lines(messages) == b"".join([message_lines([message]) for message in messages])

    @given(entries(), st.integers(0, 5))
    def test_an_entry_can_be_begun_inside(self, entry: StoredEntry, start: int) -> None:
        """The lines from `start` on are those of the whole."""
        whole = entry_lines(entry).split(b"\n")  # type: ignore[arg-type]
        start = min(start, entry.count - 1)
        assert entry_lines(entry, start=start).split(b"\n") == whole[start:]  # type: ignore[arg-type]


def error_of(line: bytes) -> str:
    """What is said about this line, the seventh."""
    parsed = parse([line], 7)
    assert not parsed.values
    (error,) = parsed.errors
    assert isinstance(error, BadLine)
    assert error.details == {"lineNumber": 7}
    assert error.message.startswith("line 7: ")
    return error.message.removeprefix("line 7: ")


class TestParsing:
    """Bad lines are named; a misspelt field never becomes a tombstone."""

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            (b"{", "not JSON: Expecting property name enclosed in double quotes at character 2"),
            (b"x", "not JSON: Expecting value at character 1"),
            (b"[1]", "not a JSON object"),
            (b'"a"', "not a JSON object"),
            (b"{} {}", "more follows the JSON value, at character 3"),
            (b"{}", 'neither "value" nor "valueBase64" is there'),
            (b'{"vaule":"x"}', 'neither "value" nor "valueBase64" is there'),
            (b'{"value":5}', '"value" is not text'),
            (b'{"value":"a","valueBase64":"YQ=="}', 'both "value" and "valueBase64" are there'),
            (b'{"valueBase64":"?"}', '"valueBase64" is not Base64'),
            (b'{"valueBase64":5}', '"valueBase64" is not Base64'),
            (b'{"valueBase64":"\xc3\xa9"}', '"valueBase64" is not Base64'),
            (b'{"value":"\\ud800"}', '"value" holds half of a surrogate pair'),
            (b'{"value":"x","key":[]}', '"key" is not text'),
            (b'{"value":"x","properties":[]}', '"properties" is not an object of texts'),
            (b'{"value":"x","properties":0}', '"properties" is not an object of texts'),
            (b'{"value":"x","properties":{"a":1}}', '"properties" is not an object of texts'),
            (b'{"value":"x","properties":{"a":"\\udfff"}}', '"properties" holds half of a surrogate pair'),
            (b'{"value":"x","eventTimeMs":"1"}', '"eventTimeMs" is not an integer'),
            (b'{"value":"x","eventTimeMs":true}', '"eventTimeMs" is not an integer'),
            (b"\xff", "not UTF-8 at byte 0"),
            (b"[" * 100_000, "nested too deeply"),
        ],
    )
    def test_what_is_wrong_is_said(self, line: bytes, message: str) -> None:
        """In words that name the field."""
        assert error_of(line).startswith(message)

    def test_huge_numbers_do_not_break_it(self) -> None:
        """Python refuses to read them; that is the line's fault."""
        assert error_of(b'{"value":"x","n":' + b"9" * 5_000 + b"}").startswith("not JSON")

    def test_reading_stops_at_the_first_bad_line(self) -> None:
        """With everything before it, numbered."""
        parsed = parse([b'{"value":"a"}\n', b"\n", b"{\n", b'{"value":"b"}\n'], 5)
        assert (parsed.values, parsed.numbers) == ([b"a"], [5])
        assert [error.details["lineNumber"] for error in parsed.errors] == [7]

    def test_bad_lines_can_be_skipped(self) -> None:
        """Each is reported."""
        parsed = parse([b'{"value":"a"}', b"{", b'{"value":null,"key":"k"}', b"x"], skip_bad=True)
        assert (parsed.values, parsed.keys, parsed.numbers) == ([b"a", None], [None, b"k"], [1, 3])
        assert [error.details["lineNumber"] for error in parsed.errors] == [2, 4]

    def test_columns_without_content_are_none(self) -> None:
        """As the engine takes them."""
        parsed = parse([b'  {"value":"a","key":null,"properties":{},"eventTimeMs":null,"other":1}\r\n'])
        assert (parsed.keys, parsed.properties, parsed.event_times) == (None, None, None)
        assert parse([]).values == []

    @given(st.binary(max_size=60))
    def test_any_line_is_a_message_or_bad(self, line: bytes) -> None:
        """Never another exception."""
        parsed = parse([line])
        assert isinstance(parsed, Parsed)
        assert len(parsed.values) + len(parsed.errors) <= 1


class TestStream:
    """Standard output as bytes."""

    def test_text_is_utf8_whatever_the_locale(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """And file names that are not text leave as they came."""
        from txnctl.output.stream import OutputStream

        held = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, "ascii"))
        stream = OutputStream()
        stream.write("č")
        stream.write(b"\xff".decode("utf-8", "surrogateescape"))
        stream.write_bytes(b"\x00")
        stream.flush()
        assert held.getvalue() == b"\xc4\x8d\xff\x00"
        assert stream.terminal is False

    def test_a_closed_standard_output_takes_everything(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`>&-` is a wish to see nothing."""
        from txnctl.output.stream import OutputStream

        monkeypatch.setattr(sys, "stdout", None)
        stream = OutputStream()
        stream.write("x")
        stream.flush()
        assert stream.terminal is False
