"""CSV as rows and messages: RFC 4180 under a header, read as `produce --input csv` reads it.

Spark's own reader cuts a quoted line break into two rows, accepts a quote that is never closed, and turns bytes that
are not text into U+FFFD, each without an error. Here all of them are errors by file and line. An empty field is null,
a quoted one (`""`) is an empty text.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.errors import BadLine, InvalidValue
from storage.limits import MESSAGE_BYTES_MAX
from txnctl.files import byte_lines
from txnctl.files.byte_lines import bad_line
from txnctl.files.cells import json_form, json_text
from txnctl.files.listing import opened, plain_name, read_errors
from txnctl.files.message_rows import FileMessage, MessageColumns, bad_row, message_row
from txnctl.input.csv_text import NEVER_CLOSED, TOO_LARGE, csv_records
from txnctl.input.names_once import check_once
from txnctl.output.human import plural
from txnctl.spark.file_systems import without_secrets

if TYPE_CHECKING:
    from txnctl.input.csv_text import CsvRecord

UTF_8: Final = "utf-8"
_LINE_BYTES_MAX: Final = 2 * MESSAGE_BYTES_MAX + (1 << 20)
"""A value of quotes alone has each of them doubled."""
_OTHER_DELIMITERS: Final = (";", "\t", "|")


class CsvDialect(NamedTuple):
    """The form of CSV files.

    Attributes:
        delimiter: the character between fields; None: a tab in `.tsv`, else a comma, and a header that looks otherwise
            is refused.
        encoding: of the text, by a name that Python knows.
    """

    delimiter: str | None = None
    encoding: str = UTF_8


PLAIN: Final = CsvDialect()
"""A comma, or a tab in `.tsv`; UTF-8."""


class CsvRow(NamedTuple):
    """A record below the header: the line on which it begins, and its fields (None: empty), or a problem."""

    number: int
    fields: list[str | None]
    problem: str | None = None


class CsvHeader(NamedTuple):
    """The names of the columns, and the delimiter between them."""

    names: list[str]
    delimiter: str


def checked_dialect(delimiter: str | None, encoding: str | None) -> CsvDialect:
    """The dialect of these options.

    Raises:
        InvalidValue: the delimiter is not one character, or the encoding is not known.
    """
    if delimiter is not None:
        delimiter = "\t" if delimiter == "\\t" else delimiter
        if len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii():
            raise InvalidValue(
                f"the delimiter is one ASCII character, not {delimiter!r}",
                hint="Such as --delimiter ';', or --delimiter '\\t' for a tab.",
            )
    try:
        info = codecs.lookup(encoding or UTF_8)
        "".encode(info.name)
    except LookupError:
        raise InvalidValue(
            f"{encoding!r} is not an encoding of text", hint="Such as utf-8, latin-1, cp1252 or utf-16."
        ) from None
    return CsvDialect(delimiter, info.name)


def check_cut(dialect: CsvDialect) -> None:
    """Check that files of an encoding can be cut at line ends.

    Raises:
        InvalidValue
    """
    if "\n".encode(dialect.encoding) != b"\n" or len("a\n".encode(dialect.encoding)) != 2:
        raise InvalidValue(
            f"a file in {dialect.encoding} cannot be cut at line ends", hint="Leave out --no-multi-line."
        )


def read_header(path: str, dialect: CsvDialect) -> CsvHeader:
    """Read the header of a file.

    Raises:
        InvalidValue: no header, a name twice, or a header that looks like one of another delimiter.
        BadLine: the header is no text of the encoding, or no CSV.
    """
    delimiter = dialect.delimiter or ("\t" if plain_name(path).endswith(".tsv") else ",")
    with read_errors(path), opened(path) as stream:
        record = next(csv_records(_lines(stream, path, dialect), delimiter), None)
    if record is None:
        raise InvalidValue(
            f"{without_secrets(path)!r} is empty, without even a header", path=without_secrets(path)
        )
    if record.problem is not None:
        raise bad_line(path, record.number, record.problem)
    names = [name or f"_c{place}" for place, name in enumerate(record.fields)]
    check_once(names, f"{without_secrets(path)}: the header: ", "Name the columns differently.")
    for name in names:
        if not _is_text(name):
            raise bad_line(path, record.number, f"it is not {dialect.encoding} text")
    if dialect.delimiter is None and len(names) == 1:
        _refuse_other_delimiter(path, names[0])
    return CsvHeader(names, delimiter)


def _refuse_other_delimiter(path: str, name: str) -> None:
    for other in _OTHER_DELIMITERS:
        if other in name:
            shown = "\\t" if other == "\t" else other
            raise InvalidValue(
                f"{without_secrets(path)}: the header is one column, {name[:40]!r}",
                hint=f"Give --delimiter '{shown}', or --delimiter , if it is one column.",
                path=without_secrets(path),
            )


def read_rows(path: str, header: CsvHeader, dialect: CsvDialect) -> Iterator[CsvRow]:
    """Yield the records below the header.

    Raises:
        BadLine: a quote that is never closed, a line that is too long, or bytes of no such encoding: what follows
            cannot be told apart.
    """
    with read_errors(path), opened(path) as stream:
        records = csv_records(_lines(stream, path, dialect), header.delimiter)
        for record in islice(records, 1, None):
            yield _row(path, record, header)


def read_lines(
    path: str, header: CsvHeader, dialect: CsvDialect, start: int, end: int
) -> Iterator[tuple[int, CsvRow]]:
    """Yield the records below the header, each with its byte, of the lines that begin from `start` on, below `end`.

    Each line is a record by itself: a quoted line end is a problem. Lines have no number here.
    """
    is_below_header = start > 0
    for at, line in byte_lines.read_lines(path, start, end, _LINE_BYTES_MAX):
        row = (
            CsvRow(0, [], f"longer than {_LINE_BYTES_MAX:,} bytes")
            if line is None
            else _parse_line(line, header, dialect)
        )
        if row is None:
            continue
        if is_below_header:
            yield at, row
        is_below_header = True


def read_messages(
    rows: Iterator[tuple[int, CsvRow]], header: CsvHeader, names: Sequence[str], columns: MessageColumns
) -> Iterator[tuple[int, FileMessage]]:
    """Yield the messages of rows, each with the place that comes with its row.

    Args:
        names: the columns of the value, in order.
    """
    indexes = {name: header.names.index(name) for name in names}
    form = json_form(names)
    for place, (_, fields, problem) in rows:
        yield place, bad_row(problem) if problem is not None else _message(fields, indexes, form, columns)


def _message(
    fields: list[str | None], indexes: dict[str, int], form: str, columns: MessageColumns
) -> FileMessage:
    return message_row(
        columns,
        lambda: form % tuple(json_text(fields[index]) for index in indexes.values()),
        lambda name: fields[indexes[name]],
    )


def _parse_line(line: bytes, header: CsvHeader, dialect: CsvDialect) -> CsvRow | None:
    """The record of one line; None for a line without a record."""
    try:
        text = line if dialect.encoding == UTF_8 else line.decode(dialect.encoding).encode()
    except UnicodeDecodeError:
        return CsvRow(0, [], f"it is not {dialect.encoding} text")
    if text.count(b'"') % 2:
        return CsvRow(0, [], "a quote is not closed on this line; leave out --no-multi-line")
    if len(header.names) == 1 and not text.strip(b"\r\n"):
        return CsvRow(0, [None])
    record = next(csv_records([text], header.delimiter), None)
    return None if record is None else _row("", record._replace(number=0), header)


def _row(path: str, record: CsvRecord, header: CsvHeader) -> CsvRow:
    number, fields, problem, lines = record
    text = b"".join(lines)
    if problem is not None:
        if problem == NEVER_CLOSED or (text.count(b'"') % 2 and not problem.startswith(TOO_LARGE)):
            raise bad_line(path, number, NEVER_CLOSED)
        return CsvRow(number, [], problem)
    if len(fields) != len(header.names):
        return CsvRow(
            number, [], f"{plural(len(fields), 'column')}, where the header has {len(header.names)}"
        )
    if not all(map(_is_text, fields)):
        return CsvRow(number, [], "it is not UTF-8 text; --encoding names another")
    if "" not in fields:
        return CsvRow(number, list(fields))
    quoted = _quoted_empty(text, header.delimiter) if b'""' in text else ()
    values = [field if field or place in quoted else None for place, field in enumerate(fields)]
    return CsvRow(number, values)


def _quoted_empty(text: bytes, delimiter: str) -> set[int]:
    """The places of the quoted fields of a record, in well-formed CSV: an empty one among them is a text."""
    between = re.escape(delimiter.encode())
    field = re.compile(rb'("(?:[^"]|"")*")(?:%b|\r?\n|\Z)|[^%b\n]*(?:%b|\r?\n|\Z)' % ((between,) * 3))
    places, at = set(), len(text) - len(text.lstrip(b"\r\n"))
    for place in range(text.count(delimiter.encode()) + 1):
        match = field.match(text, at)
        if match is None or match.end() == at:
            break
        if match[1] is not None:
            places.add(place)
        at = match.end()
    return places


def _is_text(field: str) -> bool:
    return field.isascii() or not any("\udc80" <= character <= "\udcff" for character in field)


def _lines(stream: io.BufferedReader, path: str, dialect: CsvDialect) -> Iterator[bytes]:
    """The lines as UTF-8, each with its end."""
    if dialect.encoding != UTF_8:
        yield from _recoded(stream, path, dialect)
        return
    number = 1
    while line := stream.readline(_LINE_BYTES_MAX + 1):
        if len(line) > _LINE_BYTES_MAX:
            raise bad_line(path, number, f"it is longer than {_LINE_BYTES_MAX:,} bytes")
        yield line
        number += 1


def _recoded(stream: io.BufferedReader, path: str, dialect: CsvDialect) -> Iterator[bytes]:
    text = io.TextIOWrapper(stream, dialect.encoding, newline="\n")
    number = 1
    try:
        while line := text.readline(_LINE_BYTES_MAX + 1):
            if len(line) > _LINE_BYTES_MAX:
                raise bad_line(path, number, f"it is longer than {_LINE_BYTES_MAX:,} characters")
            yield line.encode("utf-8", "surrogatepass")
            number += 1
    except UnicodeError as error:
        # The decoder reads ahead, so the line is near, not exact.
        raise BadLine(
            f"{without_secrets(path)}: not {dialect.encoding} text, after line {number - 1:,}: {error}",
            hint="--encoding names another.",
            path=without_secrets(path),
        ) from None
    finally:
        # The stream belongs to the caller, who has closed it where the reading ended early.
        with suppress(ValueError):
            text.detach()


def same_columns(paths: Sequence[str], all_names: Sequence[Sequence[str]]) -> list[str]:
    """The names of the columns of all files, in the order of the first one.

    Raises:
        InvalidValue: a file has other columns. The order may differ.
    """
    first = list(all_names[0])
    for path, names in zip(paths, all_names, strict=True):
        different = [
            *(name for name in names if name not in first),
            *(name for name in first if name not in names),
        ]
        if different:
            raise InvalidValue(
                f"column {different[0]} is not in both: {without_secrets(path)} has the columns {', '.join(names)}; "
                f"{without_secrets(paths[0])} has {', '.join(first)}",
                hint="Files of one directory or pattern have the same columns, in any order. Files that are named one "
                "by one keep their own.",
                path=without_secrets(path),
                column=different[0],
            )
    return first
