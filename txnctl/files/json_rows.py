"""Lines of JSON as messages: an object stays as written, to the last digit. No Spark: tasks import this."""

from __future__ import annotations

from collections.abc import Iterator
from json import JSONDecoder
from typing import Final, NoReturn

from storage.limits import MESSAGE_BYTES_MAX
from txnctl.files.byte_lines import read_lines
from txnctl.files.cells import Number
from txnctl.files.message_rows import FileMessage, MessageColumns, bad_row, message_row
from txnctl.input.json_object import Unreadable, read_object
from txnctl.input.names_once import named_once

LINE_BYTES_MAX: Final = 6 * MESSAGE_BYTES_MAX + (1 << 20)
"""A message's bytes may each be written as \\u0000."""


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


_CHECKED: Final = JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=named_once).raw_decode
_AS_WRITTEN: Final = JSONDecoder(
    parse_float=Number, parse_int=Number, parse_constant=_refuse_constant, object_pairs_hook=named_once
).raw_decode


def read_messages(
    path: str, start: int, end: int | None, columns: MessageColumns
) -> Iterator[tuple[int, FileMessage]]:
    """Yield the byte where a line begins, and its message, of the lines that begin from `start` on, below `end`.

    A line ends with LF, and a CR before LF belongs to the end. Lines of white space are passed over.

    Raises:
        InvalidValue: the file cannot be read.
    """
    scan = _AS_WRITTEN if columns.distinct_names() else _CHECKED
    for at, line in read_lines(path, start, end, LINE_BYTES_MAX):
        if line is None:
            yield at, bad_row(f"longer than {LINE_BYTES_MAX:,} bytes")
            continue
        text = line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")
        try:
            fields = read_object(text, scan)
        except Unreadable as error:
            yield at, bad_row(error.reason, error.place)
            continue
        if fields is not None:
            yield at, message_row(columns, lambda text=text: text, fields.get)  # type: ignore[misc]
