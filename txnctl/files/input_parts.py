"""The parts of input files, each for one task, and their messages. Every engine plans and reads by this module.

A file of lines is cut into ranges of bytes, a file of Parquet into groups of rows. A file that is compressed, or whose
records may span lines, is one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from txnctl.files import csv_rows, json_rows, listing, parquet_rows
from txnctl.files.byte_lines import bad_line, number_of
from txnctl.files.csv_rows import PLAIN, CsvDialect, CsvHeader
from txnctl.files.message_rows import FileMessage, MessageColumns

PART_BYTES: Final = 16 << 20
"""Bytes of a part of a file that is cut."""


@dataclass(frozen=True)
class InputOptions:
    """Options of the input files.

    Attributes:
        format_: one of `listing.FORMATS`; None to go by the name of each file.
        multi_line: whether values of CSV may contain line breaks; then a file is one part.
        skip: leave out rows that cannot be messages; otherwise the first such row ends the job.
        dialect: the form of CSV files.
    """

    format_: str | None = None
    multi_line: bool = True
    skip: bool = False
    dialect: CsvDialect = PLAIN


class InputPart(NamedTuple):
    """A part of a file.

    Attributes:
        start, end: bytes of lines, or numbers of groups of rows; no end: the whole file.
        size: bytes to read, about.
        names: the columns of the value, in order; of lines of JSON none.
        header: of CSV.
    """

    format_: str
    path: str
    start: int
    end: int | None
    size: int
    names: list[str]
    header: CsvHeader | None = None


def plan(path: str, columns: MessageColumns, options: InputOptions) -> list[InputPart]:
    """The parts of the files that a path, directory or pattern names, in the order of their rows.

    Raises:
        InvalidValue: a file that cannot be read, a column that is missing, or columns that differ between files.
        BadLine: a header that cannot be read.
    """
    format_ = options.format_ or listing.format_of(path)
    files = listing.input_files(path)
    if format_ == "csv":
        return _csv_parts(files, columns, options)
    if format_ == "parquet":
        return _parquet_parts(files, columns)
    return [
        InputPart(format_, file, *cut, [])
        for file in files
        for cut in _cuts(file, may_cut=not listing.is_compressed(file))
    ]


def _cuts(file: str, *, may_cut: bool) -> Iterator[tuple[int, int | None, int]]:
    """Start, end and size of each part of a file of lines."""
    size = listing.size_of(file)
    if not may_cut:
        yield 0, None, size
        return
    for start in range(0, max(size, 1), PART_BYTES):
        yield start, start + PART_BYTES, min(size - start, PART_BYTES)


def _csv_parts(files: Sequence[str], columns: MessageColumns, options: InputOptions) -> list[InputPart]:
    headers = [csv_rows.read_header(file, options.dialect) for file in files]
    if not options.multi_line:
        csv_rows.check_cut(options.dialect)
    names = csv_rows.same_columns(files, [header.names for header in headers])
    columns.check_among(names)
    return [
        InputPart("csv", file, *cut, names, header)
        for file, header in zip(files, headers, strict=True)
        for cut in _cuts(file, may_cut=not options.multi_line and not listing.is_compressed(file))
    ]


def _parquet_parts(files: Sequence[str], columns: MessageColumns) -> list[InputPart]:
    heads = [parquet_rows.read_head(file) for file in files]
    names = parquet_rows.widened(files, [head.schema for head in heads])
    columns.check_among(names)
    parts = []
    for file, head in zip(files, heads, strict=True):
        start = size = 0
        for end, more in enumerate(head.sizes, 1):
            size += more
            if size >= PART_BYTES or end == len(head.sizes):
                parts.append(InputPart("parquet", file, start, end, size, names))
                start, size = end, 0
    return parts


def read(part: InputPart, columns: MessageColumns, options: InputOptions) -> Iterator[FileMessage]:
    """Yield the messages of a part, and with `skip` the rows with a problem.

    Raises:
        BadLine: names file and line of the first row with a problem, without `skip`.
        InvalidValue: the file cannot be read, or was cut since the plan.
    """
    for place, row in _rows(part, columns, options):
        if row.problem is not None and not options.skip:
            is_row, is_byte = part.format_ == "parquet", part.format_ == "json" or part.end is not None
            number = place if is_row or not is_byte else number_of(part.path, place)
            raise bad_line(
                part.path,
                number,
                row.problem + row.place,
                "row" if is_row else "line",
                hint="--on-error skip leaves such rows out.",
            )
        yield row
    if part.format_ != "parquet":
        listing.check_whole(part.path, part.start + part.size)


def _rows(
    part: InputPart, columns: MessageColumns, options: InputOptions
) -> Iterator[tuple[int, FileMessage]]:
    """The rows of a part, each with its number, or with the byte where its line begins."""
    if part.format_ == "json":
        return json_rows.read_messages(part.path, part.start, part.end, columns)
    if part.format_ == "parquet":
        assert part.end is not None
        return parquet_rows.read_messages(part.path, part.start, part.end, part.names, columns)
    assert part.header is not None
    rows = (
        ((row.number, row) for row in csv_rows.read_rows(part.path, part.header, options.dialect))
        if part.end is None
        else csv_rows.read_lines(part.path, part.header, options.dialect, part.start, part.end)
    )
    return csv_rows.read_messages(rows, part.header, part.names, columns)
