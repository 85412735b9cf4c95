"""CSV files as rows: RFC 4180 under a header, read as `produce --input csv` reads it. No Spark: tasks import this.

Spark's own reader cuts a quoted line break into two rows, accepts a quote that is never closed, and turns bytes that
are not text into U+FFFD, each without an error. Here all of them are errors by file and line. An empty field is null,
a quoted one (`""`) is an empty text.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.errors import BadLine, InvalidValue
from storage.limits import MESSAGE_BYTES_MAX
from txnctl.input.csv_text import csv_records
from txnctl.output.human import plural
from txnctl.pipelines import files
from txnctl.spark.file_systems import is_uri, open_file_system, without_secrets

if TYPE_CHECKING:
    from txnctl.input.csv_text import CsvRecord

LOCATION: Final = ("_txnctl_file", "_txnctl_row")
PROBLEM: Final = ("_txnctl_record", "_txnctl_problem")
"""The columns beside those of the file: path, number of the first line; the text of a row without a number, problem."""

UTF_8: Final = "utf-8"
_LINE_BYTES_MAX: Final = 2 * MESSAGE_BYTES_MAX + (1 << 20)
"""A value of quotes alone has each of them doubled."""
_OTHER_DELIMITERS: Final = (";", "\t", "|")
_READ_BYTES: Final = 1 << 20


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
    delimiter = dialect.delimiter or ("\t" if _plain_name(path).endswith(".tsv") else ",")
    with _opened(path) as stream:
        record = next(csv_records(_lines(stream, path, dialect), delimiter), None)
    if record is None:
        raise InvalidValue(
            f"{without_secrets(path)!r} is empty, without even a header", path=without_secrets(path)
        )
    if record.problem is not None:
        raise _bad_line(path, record.number, record.problem)
    names = [name or f"_c{place}" for place, name in enumerate(record.fields)]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidValue(
                f"{without_secrets(path)}: the header has the column {name!r} twice",
                path=without_secrets(path),
            )
        if not _is_text(name):
            raise _bad_line(path, record.number, f"it is not {dialect.encoding} text")
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
    before = csv.field_size_limit(MESSAGE_BYTES_MAX)
    try:
        with _opened(path) as stream:
            taken: list[bytes] = []
            records = csv_records(_noted(_lines(stream, path, dialect), taken), header.delimiter)
            for index, record in enumerate(records):
                if index:
                    yield _row(path, record, b"".join(taken), header)
                taken.clear()
    finally:
        csv.field_size_limit(before)


def read_lines(
    path: str, header: CsvHeader, dialect: CsvDialect, start: int, end: int
) -> Iterator[tuple[CsvRow, bytes | None]]:
    """Yield the records below the header of the lines that begin from byte `start` on, below `end`.

    Each line is a record by itself: a quoted line end is a problem. Lines have no number here, so that a row with a
    problem comes with the text of the line.

    Raises:
        BadLine: a line that is too long.
    """
    with _opened(path) as stream:
        at = 0
        if start:
            # The line that a different part begins ends here.
            at = start - 1
            _skip(stream, at)
            at += len(stream.readline())
        is_below_header = start > 0
        while at < end and (line := stream.readline(_LINE_BYTES_MAX + 1)):
            if len(line) > _LINE_BYTES_MAX:
                raise BadLine(
                    f"{without_secrets(path)}: the line at byte {at:,} is longer than {_LINE_BYTES_MAX:,} bytes",
                    path=without_secrets(path),
                )
            at += len(line)
            row = _parse_line(line, header, dialect)
            if row is None:
                continue
            if is_below_header:
                yield row, None if row.problem is None else line.rstrip(b"\r\n")
            is_below_header = True


def _skip(stream: io.BufferedReader, count: int) -> None:
    """Pass over bytes; a stream of PyArrow may not seek."""
    if stream.seekable():
        stream.seek(count)
        return
    while count and (data := stream.read(min(count, _READ_BYTES))):
        count -= len(data)


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
    return None if record is None else _row("", record._replace(number=0), text, header)


def _row(path: str, record: CsvRecord, text: bytes, header: CsvHeader) -> CsvRow:
    number, fields, problem = record[:3]
    if problem is not None:
        if text.count(b'"') % 2:
            raise _bad_line(path, number, "the quote that begins here is never closed")
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


def _noted(lines: Iterable[bytes], taken: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        taken.append(line)
        yield line


def _lines(stream: io.BufferedReader, path: str, dialect: CsvDialect) -> Iterator[bytes]:
    """The lines as UTF-8, each with its end."""
    if dialect.encoding != UTF_8:
        yield from _recoded(stream, path, dialect)
        return
    number = 1
    while line := stream.readline(_LINE_BYTES_MAX + 1):
        if len(line) > _LINE_BYTES_MAX:
            raise _bad_line(path, number, f"it is longer than {_LINE_BYTES_MAX:,} bytes")
        yield line
        number += 1


def _recoded(stream: io.BufferedReader, path: str, dialect: CsvDialect) -> Iterator[bytes]:
    text = io.TextIOWrapper(stream, dialect.encoding, newline="\n")
    number = 1
    try:
        while line := text.readline(_LINE_BYTES_MAX + 1):
            if len(line) > _LINE_BYTES_MAX:
                raise _bad_line(path, number, f"it is longer than {_LINE_BYTES_MAX:,} characters")
            yield line.encode("utf-8", "surrogatepass")
            number += 1
    except UnicodeError as error:
        # The decoder reads ahead, so the line is near, not exact.
        raise BadLine(
            f"{without_secrets(path)}: not {dialect.encoding} text, after line {number - 1:,}: {error}",
            hint="--encoding names another.",
            path=without_secrets(path),
        ) from None


def _opened(path: str) -> io.BufferedReader:
    """Open a file of any file system that PyArrow reaches, decompressed by the ending of its name.

    Raises:
        InvalidValue
    """
    import pyarrow as pa
    from pyarrow import fs

    try:
        if not is_uri(path):
            system, place = fs.LocalFileSystem(), os.path.abspath(path)
        else:
            system, place = open_file_system(path)
        if files.is_compressed(path):
            raw = system.open_input_stream(place, compression="detect")
        else:
            raw = system.open_input_file(place)
        return io.BufferedReader(raw, _READ_BYTES)
    except pa.ArrowInvalid as error:
        raise InvalidValue(
            f"cannot read {without_secrets(path)!r}: {error}", path=without_secrets(path)
        ) from None
    except OSError as error:
        raise InvalidValue(
            f"cannot read {without_secrets(path)!r}: {error.strerror or error}", path=without_secrets(path)
        ) from error


def _plain_name(path: str) -> str:
    name = path.lower()
    for ending in files.COMPRESSED:
        name = name.removesuffix(ending)
    return name


def _bad_line(path: str, number: int, problem: str) -> BadLine:
    return BadLine(
        f"{without_secrets(path)}: line {number:,}: {problem}", path=without_secrets(path), line=number
    )


def same_columns(paths: Sequence[str], headers: Sequence[CsvHeader]) -> list[str]:
    """The names of the columns of all files, in the order of the first one.

    Raises:
        InvalidValue: a file has other columns. The order may differ.
    """
    first = headers[0].names
    for path, header in zip(paths, headers, strict=True):
        if set(header.names) != set(first):
            raise InvalidValue(
                f"{without_secrets(path)} has the columns {', '.join(header.names)}; "
                f"{without_secrets(paths[0])} has {', '.join(first)}",
                hint="Files of one directory or pattern have the same columns, in any order.",
                path=without_secrets(path),
            )
    return first
