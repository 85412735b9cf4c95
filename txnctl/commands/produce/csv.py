"""CSV input of `produce`: RFC 4180 under a header; a record may span lines, numbered by the first line."""

from __future__ import annotations

from storage.errors import BadInput, BadLine, InvalidValue
from storage.limits import MESSAGE_BYTES_MAX, PROPERTIES_MAX
from txnctl.commands.produce.sending import Batch, OptionalColumns
from txnctl.input.csv_text import csv_lines, csv_records
from txnctl.input.json_object import Unreadable
from txnctl.input.lines import LineReader
from txnctl.input.message_lines import read_time
from txnctl.input.names_once import check_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from txnctl.input.source import Source

_LINE_BYTES_MAX = 2 * MESSAGE_BYTES_MAX + 1024 * 1024
"""A value of quotes alone has each of them doubled."""

_BATCH_MAX = 50_000
_HEADER = "line 1, the header: "
_PROPERTY = "properties."
_TIMES = ("eventTime", "eventTimeMs")
_DELIVERY_TIMES = ("deliveryTime", "deliveryTimeMs")
_HINT = "The columns are value, and where wanted key, eventTime, deliveryTime (or these with Ms) and properties.NAME."


class CsvColumns:
    """Where each part of a message stands in a record.

    Raises:
        BadLine: the header names no value, a column twice, or a column that is none of ours.
    """

    __slots__ = ("count", "delivery_time", "key", "names", "properties", "time", "value")

    def __init__(self, names: list[str]) -> None:
        self.count, self.names = len(names), names
        self.key = self.time = self.delivery_time = self.value = -1
        self.properties: list[tuple[str, int]] = []
        check_once(names, _HEADER, _HINT)
        for place, name in enumerate(names):
            if name == "value":
                self.value = place
            elif name == "key":
                self.key = place
            elif name in _TIMES:
                if self.time >= 0:
                    raise _bad_header(f"{' and '.join(_TIMES)} say the same")
                self.time = place
            elif name in _DELIVERY_TIMES:
                if self.delivery_time >= 0:
                    raise _bad_header(f"{' and '.join(_DELIVERY_TIMES)} say the same")
                self.delivery_time = place
            elif name.startswith(_PROPERTY):
                self._add_property(name.removeprefix(_PROPERTY), place)
            else:
                raise _bad_header(f"column {name[:80]!r} is none of ours")
        if self.value < 0:
            raise _bad_header("there is no column named value")
        if len(self.properties) > PROPERTIES_MAX:
            raise _bad_header(f"more than {PROPERTIES_MAX:,} properties")

    def _add_property(self, name: str, place: int) -> None:
        if not name:
            raise _bad_header("a property has no name")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise _bad_header("the name of a property is not UTF-8") from None
        self.properties.append((name, place))


class CsvReader:
    """Records into batches. Complete records are passed on before a wait for more input."""

    def __init__(self, source: Source, take: Callable[[Batch], None]) -> None:
        self._lines = LineReader(source, _LINE_BYTES_MAX, keeps_cr=True)
        self._take = take
        self._columns: CsvColumns | None = None
        self._start = 1
        self._clear()

    def read_records(self) -> None:
        """Read it all."""
        lines = csv_lines(self._lines, _LINE_BYTES_MAX, self._hand_on)
        for number, fields, problem, _ in csv_records(lines):
            self._start = number
            if problem is not None:
                self._refuse(problem)
            elif self._columns is None:
                self._columns = CsvColumns(fields)
            else:
                self._add(fields, self._columns)
            if len(self._values) >= _BATCH_MAX:
                self._hand_on()
        self._hand_on()

    def _add(self, fields: list[str], columns: CsvColumns) -> None:
        if len(fields) != columns.count:
            self._refuse(f"{len(fields)} fields, where the header has {columns.count}")
            return
        try:
            times = [
                read_time(fields[place], columns.names[place]) if place >= 0 and fields[place] else None
                for place in (columns.time, columns.delivery_time)
            ]
        except Unreadable as why:
            self._refuse(str(why))
            return
        properties = {name: fields[place] for name, place in columns.properties if fields[place]}
        try:
            "".join(properties.values()).encode()
        except UnicodeEncodeError:
            self._refuse("a property is not UTF-8")
            return
        key = fields[columns.key] if columns.key >= 0 else ""
        self._values.append(fields[columns.value].encode("utf-8", "surrogateescape"))
        self._keys.append(key.encode("utf-8", "surrogateescape") if key else None)
        self._properties.append(properties or None)
        self._times.append(times[0])
        self._delivery_times.append(times[1])
        self._numbers.append(self._start)

    def _refuse(self, why: str) -> None:
        if self._columns is None:
            raise _bad_header(why)
        self._errors.append(BadLine(f"line {self._start}: {why}", hint=_HINT, lineNumber=self._start))

    def _hand_on(self) -> None:
        if not self._values and not self._errors:
            return
        columns = self._columns
        assert columns is not None
        batch = Batch(
            self._values,
            self._numbers,
            OptionalColumns(
                self._keys if columns.key >= 0 else None,
                self._properties if columns.properties else None,
                self._times if columns.time >= 0 else None,
                self._delivery_times if columns.delivery_time >= 0 else None,
            ),
            self._errors,
        )
        self._clear()
        self._take(batch)

    def _clear(self) -> None:
        self._values: list[bytes | None] = []
        self._keys: list[bytes | None] = []
        self._properties: list[dict[str, str] | None] = []
        self._times: list[int | None] = []
        self._delivery_times: list[int | None] = []
        self._numbers: list[int] = []
        self._errors: list[BadInput] = []


def _bad_header(why: str) -> InvalidValue:
    return InvalidValue(f"{_HEADER}{why}", hint=_HINT)
