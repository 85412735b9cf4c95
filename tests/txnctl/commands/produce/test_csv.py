"""Csv: `txnctl/commands/produce/csv.py`."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from storage import Store
from storage.limits import MESSAGE_BYTES_MAX
from tests.txnctl.commands.produce.produce_steps import stored, values
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("path")


TOPICS = ("orders",)


class TestCsv:
    """Records under a header."""

    def test_columns_go_by_their_names(self, run: Any, path: Path) -> None:
        """In any order; quotes hold commas, line ends and quotes; what is empty is none."""
        text = (
            b"\xef\xbb\xbfkey,value,properties.source,eventTime,properties.n\r\n"
            b'B1,"a, ""b""\r\nc",web,2024-05-01T10:00:00Z,1\r\n'
            b"\r\n"
            b",,,,\r\n"
            b"B\xff,\xe2\x82\xac,,1714557600000,2"
        )
        assert run("produce", "orders", "--input", "csv", stdin=text).status == 0
        assert [(m.key, m.value, m.properties, m.event_time) for m in stored(path)] == [
            (b"B1", b'a, "b"\r\nc', {"source": "web", "n": "1"}, 1714557600000),
            (None, b"", {}, None),
            (b"B\xff", b"\xe2\x82\xac", {"n": "2"}, 1714557600000),
        ]

    def test_delivery_times(self, run: Any, path: Path) -> None:
        """As text or in milliseconds; an empty one is none."""
        text = b"deliveryTime,value,eventTime\n2024-05-01T10:00:00Z,a,5\n,b,\n"
        assert run("produce", "orders", "--input", "csv", stdin=text).status == 0
        assert run("produce", "orders", "--input", "csv", stdin=b"value,deliveryTimeMs\nc,7\n").status == 0
        assert [(m.value, m.deliver_at, m.event_time) for m in stored(path)] == [
            (b"a", 1714557600000, 5), (b"b", None, None), (b"c", 7, None),
        ]  # fmt: skip

    def test_a_column_named_after_milliseconds_takes_every_number(self, run: Any, path: Path) -> None:
        """Numbers that a column without the unit refuses, for a time in seconds or a date may be meant."""
        text = b"value,eventTimeMs,deliveryTimeMs\na,20240501,1714521600\n"
        assert run("produce", "orders", "--input", "csv", stdin=text).status == 0
        assert [(m.event_time, m.deliver_at) for m in stored(path)] == [(20240501, 1714521600)]
        text = b"value,deliveryTime\na,\nb,20300501\n"
        outcome = run("produce", "orders", "--input", "csv", stdin=text)
        assert outcome.status == 2
        assert "line 3: deliveryTime is a time in 1970, in milliseconds: 20300501" in outcome.err

    def test_control_characters_are_content(self, run: Any, start: Any, path: Path, tmp_path: Path) -> None:
        """Every byte but LF, quotes and commas, and a CR before LF; from a pipe and from a file."""
        text = b"value,key\r\na\rb,\0\r\n\x0b\x0c\x1c\x85,\r\r\n\x1b[2J\x04\x1a,\xff\r"
        expected = [(b"a\rb", b"\0"), (b"\x0b\x0c\x1c\x85", b"\r"), (b"\x1b[2J\x04\x1a", b"\xff\r")]
        process = start("produce", "orders", "--input", "csv")
        process.communicate(text, 30)
        assert process.returncode == 0
        assert [(m.value, m.key) for m in stored(path)] == expected
        file = tmp_path / "records"
        file.write_bytes(text)
        assert run("produce", "orders", str(file), "--input", "csv").status == 0
        assert [(m.value, m.key) for m in stored(path)] == expected * 2

    @pytest.mark.parametrize(
        ("header", "why"),
        [
            (b"key,text", "'text'"),
            (b"key", "value"),
            (b"value,key,value", "twice"),
            (b"value,eventTime,eventTimeMs", "say the same"),
            (b"value,properties.", "a property has no name"),
            (b"value,deliveryTime,deliveryTimeMs", "say the same"),
            (b'"value', "end of data"),
            (b"value,properties.\xff", "UTF-8"),
        ],
    )
    def test_a_bad_header_is_refused(self, run: Any, path: Path, header: bytes, why: str) -> None:
        """Whatever --on-error says: nothing under it means anything."""
        outcome = run("produce", "orders", "--input", "csv", "--on-error", "skip", stdin=header + b"\na,b\n")
        assert outcome.status == 2
        assert "the header" in outcome.err
        assert why in outcome.err
        assert values(path) == []

    @pytest.mark.parametrize(
        ("record", "why"),
        [
            (b"a", "1 fields"),
            (b"a,b,c,d", "4 fields"),
            (b"a,yesterday,", "not a time"),
            (b"a,20240501,", "eventTime is a time in 1970, in milliseconds: 20240501"),
            (b"a,1714521600,", "eventTime is a time in 1970, in milliseconds: 1714521600"),
            (
                b"a,1950-01-01,",
                "eventTime is a time before 1970: 1950-01-01. Times before 1970 are not kept.",
            ),
            (b"a,,\xff", "UTF-8"),
            (b'"a"b,,', "expected after"),
        ],
    )
    def test_a_bad_record_is_named_by_its_first_line(
        self, run: Any, path: Path, record: bytes, why: str
    ) -> None:
        """Records before it are stored; with skip, those after it too."""
        text = b'value,eventTime,properties.p\n"one\nmore",,\n' + record + b"\nlast,,\n"
        outcome = run("produce", "orders", "--input", "csv", stdin=text)
        assert outcome.status == 2
        assert "line 4: " in outcome.err
        assert why in outcome.err
        assert values(path) == [b"one\nmore"]
        outcome = run("produce", "orders", "--input", "csv", "--on-error", "skip", stdin=text)
        assert outcome.status == 0
        assert "1 line skipped" in outcome.err
        assert values(path) == [b"one\nmore"] * 2 + [b"last"]

    @pytest.mark.parametrize("quoted", [False, True])
    def test_a_large_field_is_skipped_as_a_whole(self, run: Any, path: Path, quoted: bool) -> None:
        """The lines inside its quotes are no messages."""
        inside = b"a,\n" * (MESSAGE_BYTES_MAX // 3 + 1) if quoted else b"a" * (MESSAGE_BYTES_MAX + 1)
        text = b"value,key\nfirst,\n" + (b'"' + inside + b'"' if quoted else inside) + b",\nlast,\n"
        outcome = run("produce", "orders", "--input", "csv", "--on-error", "skip", stdin=text)
        assert (outcome.status, values(path)) == (0, [b"first", b"last"])
        assert "1 line skipped" in outcome.err
        outcome = run("produce", "orders", "--input", "csv", stdin=text)
        assert (outcome.status, values(path)) == (2, [b"first", b"last", b"first"])
        assert "line 3: a field has more than 5,242,880 bytes" in outcome.err

    def test_a_quote_that_is_never_closed(self, run: Any, path: Path) -> None:
        """The record it begins in is named, however far it reaches."""
        text = b'value\na\n"b\n' + b"more\n" * 1000
        outcome = run("produce", "orders", "--input", "csv", stdin=text)
        assert outcome.status == 2
        assert "line 3: " in outcome.err
        assert values(path) == [b"a"]

    def test_complete_records_do_not_wait_for_the_next(self, start: Any, path: Path) -> None:
        """Also when what has come ends inside quotes."""
        process = start("produce", "orders", "--input", "csv")
        process.stdin.write(b'value\na\n"b\n')
        process.stdin.flush()
        wait_for(lambda: values(path) == [b"a"], "a complete record is stored")
        process.stdin.write(b'c"\n')
        process.stdin.close()
        assert process.wait(20) == 0
        assert values(path) == [b"a", b"b\nc"]


def test_what_csv_writers_write_of_one_column_comes_back(run: Any, path: Path) -> None:
    """Empty values among them, which Python quotes and others leave as empty lines; a line number counts all lines."""
    text = io.StringIO()
    values = ["value", "a", "", "b", "", ""]
    csv.writer(text).writerows([value] for value in values)
    for data in (text.getvalue().encode(), "\n".join(values).encode() + b"\n"):
        assert run("produce", "orders", "--input", "csv", stdin=data).status == 0
    with Store.open(path, read_only=True) as store:
        assert [message.value.decode() for message in store.reader("orders")] == values[1:] * 2
    outcome = run("produce", "orders", "--input", "csv", stdin=b"value\n\na,b\n")
    assert "line 3" in outcome.err
