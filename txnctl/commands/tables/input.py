"""The input of `tables import`: rows as printed by `tables export`, numbered by line.

No line is left out: the first bad line ends the import, since an import is one transaction.
"""

from __future__ import annotations

from binascii import Error as NotBase64, a2b_base64

from storage.errors import BadLine, InvalidValue
from storage.limits import TABLE_KEY_BYTES_MAX, TABLE_VALUE_BYTES_MAX
from txnctl.commands.tables.export import CSV_COLUMNS
from txnctl.input.csv_text import csv_lines, csv_records
from txnctl.input.lines import LineReader
from txnctl.input.names_once import check_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from txnctl.input.source import Source

    Pair = tuple[bytes, bytes]
    AtPause = Callable[[], None]

_HEADER = "line 1, the header: "
_MEBIBYTE = 1024 * 1024
_NDJSON_LINE_BYTES_MAX = 6 * TABLE_VALUE_BYTES_MAX + _MEBIBYTE
"""A byte may be written as \\u0000."""

_CSV_LINE_BYTES_MAX = 2 * TABLE_VALUE_BYTES_MAX + _MEBIBYTE
"""A value of quotes alone has each of them doubled."""

_NDJSON_HINT = (
    'A line is an object such as {"key":"B1","value":"100"}; keyBase64 and valueBase64 are for any bytes.'
)
_CSV_HINT = f"The columns are {', '.join(CSV_COLUMNS)}; one for the key and one for the value will do."


def read_ndjson(source: Source, at_pause: AtPause) -> Iterator[Pair]:
    """A line is an object; further names are ignored, so that `scan -o ndjson` can be read back too.

    Args:
        at_pause: called after each block of lines.

    Raises:
        BadLine
    """
    from txnctl.input.json_object import Unreadable, read_bytes, read_object

    for block in LineReader(source, _NDJSON_LINE_BYTES_MAX):
        for number, line in enumerate(block.lines, block.first):
            try:
                fields = read_object(line)
                if fields is None:
                    continue
                key, value = read_bytes(fields, "key", needed=True), read_bytes(fields, "value", needed=True)
            except Unreadable as error:
                raise _bad(number, str(error), _NDJSON_HINT) from None
            if value is None:
                raise _bad(number, "a null value; a table has none", "`tables rm` deletes a key.")
            yield _checked(number, key or b"", value)
        if block.too_long is not None:
            raise _bad(block.too_long, f"longer than {_NDJSON_LINE_BYTES_MAX:,} bytes", _NDJSON_HINT)
        at_pause()


def read_csv(source: Source, at_pause: AtPause) -> Iterator[Pair]:
    """A record under a header is a row.

    Raises:
        BadLine, InvalidValue
    """
    reader = LineReader(source, _CSV_LINE_BYTES_MAX, keeps_cr=True)
    yield from _records(csv_lines(reader, _CSV_LINE_BYTES_MAX, at_pause))


READERS = {"ndjson": read_ndjson, "csv": read_csv}


def _records(lines: Iterator[bytes]) -> Iterator[Pair]:
    columns = None
    for number, fields, problem, _ in csv_records(lines, field_max=2 * TABLE_VALUE_BYTES_MAX):
        if problem is not None:
            raise _bad(number, problem, _CSV_HINT)
        if columns is None:
            columns = _Columns(fields)
        else:
            yield columns.row(number, fields)


class _Columns:
    """Where key and value stand in a record.

    Raises:
        InvalidValue: the header names no key or no value, a column twice, or a column that is none of ours.
    """

    def __init__(self, names: list[str]) -> None:
        self._count = len(names)
        self._places = {name: place for place, name in enumerate(names)}
        check_once(names, _HEADER, _CSV_HINT)
        for name in names:
            if name not in CSV_COLUMNS:
                raise _bad_header(f"column {name[:80]!r} is none of ours")
        for name in CSV_COLUMNS[:2]:
            if name not in self._places and f"{name}Base64" not in self._places:
                raise _bad_header(f"there is no column named {name}")

    def row(self, number: int, fields: list[str]) -> Pair:
        """The key and value of a record."""
        if len(fields) != self._count:
            raise _bad(number, f"{len(fields)} fields, where the header has {self._count}", _CSV_HINT)
        return _checked(number, self._bytes(number, fields, "key"), self._bytes(number, fields, "value"))

    def _bytes(self, number: int, fields: list[str], name: str) -> bytes:
        text = fields[self._places[name]] if name in self._places else ""
        place = self._places.get(f"{name}Base64")
        if place is None or not fields[place]:
            return text.encode("utf-8", "surrogateescape")
        if text:
            raise _bad(number, f"both {name} and {name}Base64 are there", _CSV_HINT)
        try:
            return a2b_base64(fields[place].encode("utf-8", "surrogateescape"), strict_mode=True)
        except NotBase64:
            raise _bad(number, f"{name}Base64 is not Base64", _CSV_HINT) from None


def _checked(number: int, key: bytes, value: bytes) -> Pair:
    """Check the sizes of key and value."""
    if not 1 <= len(key) <= TABLE_KEY_BYTES_MAX:
        raise _bad(number, f"a key has 1 to {TABLE_KEY_BYTES_MAX} bytes, not {len(key):,}", None)
    if len(value) > TABLE_VALUE_BYTES_MAX:
        raise _bad(
            number, f"a value has {TABLE_VALUE_BYTES_MAX:,} bytes at the most, not {len(value):,}", None
        )
    return key, value


def _bad(number: int, why: str, hint: str | None) -> BadLine:
    return BadLine(f"line {number}: {why}", hint=hint, lineNumber=number)


def _bad_header(why: str) -> InvalidValue:
    return InvalidValue(f"{_HEADER}{why}", hint=_CSV_HINT)
