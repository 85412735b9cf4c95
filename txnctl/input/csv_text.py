"""CSV as records. Bytes that are not UTF-8 and control characters pass through unharmed.

A line ends with LF, and a CR before LF belongs to the end; every other CR is content. The csv module takes a CR outside
quotes for the end of a record, so such a CR goes through the module as a stand-in that no bytes decode to.
"""

from __future__ import annotations

import csv
from typing import NamedTuple

from storage.errors import BadLine
from storage.limits import MESSAGE_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from txnctl.input.lines import Block

_CR_STAND_IN = "\udc0d"
"""Bytes that are not UTF-8 become U+DC80 to U+DCFF, so no line decodes to this one."""


NEVER_CLOSED = "the quote that begins here is never closed"
"""The problem of a record without an end, which takes all that follows."""

TOO_LARGE = "a field has more than"
"""The beginning of the problem of a record that has an end."""


class CsvRecord(NamedTuple):
    """The fields of a record that begins on line `number`, or the problem, with no fields; and its lines."""

    number: int
    fields: list[str]
    problem: str | None
    lines: list[bytes]


def csv_lines(blocks: Iterable[Block], line_bytes_max: int, at_pause: Callable[[], None]) -> Iterator[bytes]:
    """The lines of blocks from a reader that keeps CR, each with LF, where the input has LF.

    Args:
        line_bytes_max: for the error about a line that is longer.
        at_pause: called after each block, before more input is waited for.

    Raises:
        BadLine: a line is too long to be held.
    """
    for block in blocks:
        last = len(block.lines) - 1 if block.is_unended else -1
        for index, line in enumerate(block.lines):
            yield line if index == last else line + b"\n"
        at_pause()
        if block.too_long is not None:
            # The line may stand inside quotes, and the lines after would be misread.
            raise BadLine(
                f"line {block.too_long} is longer than {line_bytes_max:,} bytes",
                hint="Is a closing quote missing?",
                lineNumber=block.too_long,
            )


def csv_records(
    lines: Iterable[bytes], delimiter: str = ",", field_max: int = MESSAGE_BYTES_MAX
) -> Iterator[CsvRecord]:
    """The records of lines with their ends; a byte order mark is passed over.

    An empty line is a record of one empty field where the first record, the header, has one field, and is passed over
    elsewhere. After a record with a problem the next line begins a record; after a field that is too large, the line
    behind the closing quote.

    Args:
        field_max: characters of a field.
    """
    text = _Text(lines)
    parsed = csv.reader(text, strict=True, delimiter=delimiter)
    is_first, has_one_field = True, False
    while True:
        number, text.lines = text.number + 1, []
        problem: str | None = None
        # The limit is one of the whole process.
        before = csv.field_size_limit(field_max)
        try:
            fields = next(parsed)
        except StopIteration:
            return
        except csv.Error as error:
            problem = str(error)
        finally:
            csv.field_size_limit(before)
        if problem is not None:
            if problem.startswith("field larger than"):
                is_closed = text.pass_quote()
                problem = f"{TOO_LARGE} {field_max:,} bytes" if is_closed else NEVER_CLOSED
            yield CsvRecord(number, [], problem, text.lines)
            continue
        if text.has_stand_in:
            fields = [field.replace(_CR_STAND_IN, "\r") for field in fields]
            text.has_stand_in = False
        if not fields and has_one_field:
            fields = [""]
        if fields:
            if is_first:
                # The byte order mark of a spreadsheet is no part of the first name.
                fields[0] = fields[0].removeprefix("\ufeff")
                is_first, has_one_field = False, len(fields) == 1
            yield CsvRecord(number, fields, None, text.lines)


class _Text:
    """Lines as text for the csv module, each CR that is content replaced.

    Attributes:
        has_stand_in: whether a CR was replaced since the reader of the records last looked.
        number: of the last line.
        lines: those of the record.
    """

    __slots__ = ("_rest", "has_stand_in", "lines", "number")

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._rest = iter(lines)
        self.has_stand_in = False
        self.number = 0
        self.lines: list[bytes] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._rest)
        self.number += 1
        self.lines.append(line)
        text = line.decode("utf-8", "surrogateescape")
        if "\r" not in text:
            return text
        content, end = (text[:-2], "\r\n") if text.endswith("\r\n") else (text, "")
        if "\r" in content:
            content = content.replace("\r", _CR_STAND_IN)
            self.has_stand_in = True
        return content + end

    def pass_quote(self) -> bool:
        """Pass over lines up to the one that closes an open quote of the record; False at the end of the input."""
        is_open = sum(line.count(b'"') for line in self.lines) % 2 == 1
        while is_open:
            line = next(self._rest, None)
            if line is None:
                return False
            self.number += 1
            is_open ^= line.count(b'"') % 2 == 1
        return True
