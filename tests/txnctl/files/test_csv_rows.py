"""CSV files as rows: every field as it was written, or an error by file and line."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from storage.errors import BadLine, InvalidValue
from txnctl.files import csv_rows
from txnctl.files.csv_rows import PLAIN, CsvDialect, CsvRow

FIELDS = st.none() | st.text('a",;\r\n\x00ä ', max_size=4)


def rows_of(path: Path, dialect: CsvDialect = PLAIN) -> list[CsvRow]:
    return list(csv_rows.read_rows(str(path), csv_rows.read_header(str(path), dialect), dialect))


def cell(field: str | None) -> str:
    return "" if field is None else '"' + field.replace('"', '""') + '"'


@given(
    rows=st.lists(st.tuples(FIELDS, FIELDS), max_size=6),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_quoted_fields_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str | None, str | None]],
    delimiter: str,
    end: str,
) -> None:
    """Line ends, quotes and delimiters in them, and the difference between an empty text and nothing."""
    path = tmp_path_factory.getbasetemp() / "quoted.csv"
    lines = ["a" + delimiter + "b", *(cell(first) + delimiter + cell(second) for first, second in rows)]
    path.write_text(end.join(lines), newline="")
    found = rows_of(path, CsvDialect(delimiter))
    assert [(row.fields, row.problem) for row in found] == [(list(row), None) for row in rows]


@given(rows=st.lists(st.tuples(FIELDS, FIELDS), max_size=6))
def test_the_writer_of_python_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str | None, str | None]]
) -> None:
    """With quotes only where they are needed, so that an empty field is nothing."""
    path = tmp_path_factory.getbasetemp() / "minimal.csv"
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows([("a", "b"), *rows])
    path.write_text(text.getvalue(), newline="")
    expected = [[field or None for field in row] for row in rows]
    assert [row.fields for row in rows_of(path)] == expected


def test_lines_are_numbered_by_the_first_of_a_record(tmp_path: Path) -> None:
    """Blank lines, and line ends inside quotes, count."""
    path = tmp_path / "a.csv"
    path.write_text('a,b\n\n1,"x\ny"\n2\n3,4\n')
    assert [(row.number, row.problem) for row in rows_of(path)] == [
        (3, None), (5, "1 column, where the header has 2"), (6, None),
    ]  # fmt: skip


def test_ranges_of_a_file_have_each_line_once(tmp_path: Path) -> None:
    """Wherever they are cut, also behind a line end or in the header; without numbers, each with its byte."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'a,b\r\n1,2\r\n\r\n3\r\n5,"6"')
    header = csv_rows.read_header(str(path), PLAIN)
    size = path.stat().st_size
    whole = [
        (5, CsvRow(0, ["1", "2"])),
        (12, CsvRow(0, [], "1 column, where the header has 2")),
        (15, CsvRow(0, ["5", "6"])),
    ]
    for cut in range(1, size + 1):
        parts = [
            *csv_rows.read_lines(str(path), header, PLAIN, 0, cut),
            *csv_rows.read_lines(str(path), header, PLAIN, cut, size),
        ]
        assert parts == whole, cut


def test_compressed_files_and_a_tab_by_the_ending(tmp_path: Path) -> None:
    """The ending of the name says both."""
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"a\tb\n1\t2\n"))
    assert [row.fields for row in rows_of(path)] == [["1", "2"]]


@pytest.mark.parametrize(
    ("encoding", "text"), [("utf-16", "a,b\nä,ö\n"), ("cp1252", "a,b\n€,ö\n"), ("utf-8-sig", "a,b\nä,ö\n")]
)
def test_encodings(tmp_path: Path, encoding: str, text: str) -> None:
    """The bytes of the text, byte order mark or none, are the same rows."""
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    dialect = csv_rows.checked_dialect(None, encoding)
    assert [row.fields for row in rows_of(path, dialect)] == [text.split("\n")[1].split(",")]


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", InvalidValue, "is empty, without even a header"),
        (b"a;b\n1;2\n", InvalidValue, "the header is one column, 'a;b'"),
        (b"a\tb\n", InvalidValue, r"the header is one column, 'a\\tb'"),
        (b"a,b,a\n", InvalidValue, "the header: 'a' is given twice"),
        (b'a,"b\n1,2\n', BadLine, "line 1: "),
        (b"a,\xe4\n", BadLine, "line 1: it is not utf-8 text"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, content: bytes, error: type[Exception], says: str) -> None:
    """Each by its file."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(error, match=says) as caught:
        csv_rows.read_header(str(path), PLAIN)
    assert str(path) in str(caught.value)


def test_a_single_column_that_looks_like_more_may_be_asked_for(tmp_path: Path) -> None:
    """By naming the delimiter."""
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1;2\n")
    assert [row.fields for row in rows_of(path, CsvDialect(","))] == [["1;2"]]
    assert [row.fields for row in rows_of(path, CsvDialect(";"))] == [["1", "2"]]


@pytest.mark.parametrize(
    ("delimiter", "encoding"),
    [("", None), (";;", None), ('"', None), ("ä", None), (None, "base64"), (None, "utf-9")],
)
def test_a_dialect_that_is_none(delimiter: str | None, encoding: str | None) -> None:
    """One ASCII character, and an encoding of text."""
    with pytest.raises(InvalidValue):
        csv_rows.checked_dialect(delimiter, encoding)


def test_text_of_the_wrong_encoding_is_named(tmp_path: Path) -> None:
    """By its file and about its line; bytes that are not UTF-8 exactly, because the rows behind are still told apart."""
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,\xff\xff\n2,x\n")
    bad, good = rows_of(path)
    assert (bad.number, bad.problem) == (2, "it is not UTF-8 text; --encoding names another")
    assert good == CsvRow(3, ["2", "x"])
    with pytest.raises(BadLine, match="not ascii text, after line"):
        rows_of(path, CsvDialect(None, "ascii"))


def test_columns_of_the_files_of_a_directory(tmp_path: Path) -> None:
    """In any order; a file with others is named."""
    for name, text in (("a", "x,y\n"), ("b", "y,x\n"), ("c", "x,z\n")):
        (tmp_path / f"{name}.csv").write_text(text)
    paths = [str(tmp_path / f"{name}.csv") for name in "abc"]
    names = [csv_rows.read_header(path, PLAIN).names for path in paths]
    assert csv_rows.same_columns(paths[:2], names[:2]) == ["x", "y"]
    with pytest.raises(InvalidValue, match=r"column z is not in both: .*c\.csv has the columns x, z"):
        csv_rows.same_columns(paths, names)


def test_an_empty_line_under_a_single_column_is_a_row(tmp_path: Path) -> None:
    """Of nothing, whether the file is read whole or in parts; under several columns it is passed over."""
    path = tmp_path / "a.csv"
    path.write_text('a\n1\n\n""\n')
    header = csv_rows.read_header(str(path), PLAIN)
    whole = [row.fields for row in rows_of(path)]
    parts = [row.fields for _, row in csv_rows.read_lines(str(path), header, PLAIN, 0, 100)]
    assert whole == parts == [["1"], [None], [""]]
