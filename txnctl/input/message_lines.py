"""NDJSON read back into messages: the inverse of `messages`, for `produce --input ndjson`.

Only value, key, properties, event time and delivery time are taken; further names in a line of `consume` (ids,
transaction) belong to the old message. `eventTimeMs`, as `consume` prints it, is any integer of milliseconds;
`eventTime` is a time as options take it, or a number that can be meant as milliseconds. A line without any value is
refused rather than taken for a tombstone: a misspelt field must not delete a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from storage.errors import BadLine, InvalidValue
from txnctl.input.json_object import Unreadable, read_bytes, read_object
from txnctl.output.timestamp import milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")


class Parsed:
    """Messages as parallel columns, and the lines that are none.

    Attributes:
        values: bytes or None (a tombstone) each.
        keys, properties, event_times, delivery_times: as long as `values`; None where no message has any.
        numbers: the line number of each message.
        errors: errors of the lines left out.
    """

    __slots__ = ("delivery_times", "errors", "event_times", "keys", "numbers", "properties", "values")

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = []
        self.properties: list[dict[str, str] | None] | None = []
        self.event_times: list[int | None] | None = []
        self.delivery_times: list[int | None] | None = []
        self.numbers: list[int] = []
        self.errors: list[BadLine] = []


def parse(lines: Iterable[bytes], first_number: int = 1, *, skip_bad: bool = False) -> Parsed:
    """Parse lines into messages, numbered from `first_number`; empty lines are passed over.

    At the first bad line reading stops, with that error and all messages before it, unless `skip_bad`.
    """
    parsed = Parsed()
    values, numbers = parsed.values, parsed.numbers
    keys: list[bytes | None] = []
    properties: list[dict[str, str] | None] = []
    event_times: list[int | None] = []
    delivery_times: list[int | None] = []
    for number, line in enumerate(lines, first_number):
        try:
            fields = read_object(line)
            if fields is None:
                continue
            message = (
                read_bytes(fields, "value", needed=True),
                read_bytes(fields, "key"),
                _named(fields),
                _time(fields, "eventTime", "eventTimeMs"),
                _time(fields, "deliveryTime", "deliveryTimeMs"),
            )
        except Unreadable as error:
            parsed.errors.append(BadLine(f"line {number}: {error}", hint=_HINT, lineNumber=number))
            if skip_bad:
                continue
            break
        values.append(message[0])
        keys.append(message[1])
        properties.append(message[2])
        event_times.append(message[3])
        delivery_times.append(message[4])
        numbers.append(number)
    parsed.keys = _unless_empty(keys)
    parsed.properties = _unless_empty(properties)
    parsed.event_times = _unless_empty(event_times)
    parsed.delivery_times = _unless_empty(delivery_times)
    return parsed


_HINT = (
    'A line is an object such as {"value":"text","key":"k","properties":{"p":"v"}}, with eventTime and '
    "deliveryTime (or these with Ms) where wanted."
)


def _named(fields: Mapping[str, object]) -> dict[str, str] | None:
    properties = fields.get("properties")
    if not properties and properties in (None, {}):
        return None
    if type(properties) is not dict or set(map(type, properties.values())) != {str}:
        raise Unreadable('"properties" is not an object of texts')
    try:
        "".join([*properties, *properties.values()]).encode()
    except UnicodeEncodeError:
        raise Unreadable('"properties" holds half of a surrogate pair') from None
    return properties


def _time(fields: Mapping[str, object], name: str, name_ms: str) -> int | None:
    time_ms, time = fields.get(name_ms), fields.get(name)
    if time is None:
        if time_ms is None or type(time_ms) is int:
            return time_ms
        raise Unreadable(f'"{name_ms}" is not an integer')
    if time_ms is not None:
        raise Unreadable(f'"{name}" and "{name_ms}" say the same')
    if type(time) is not int and type(time) is not str:
        raise Unreadable(f'"{name}" is neither text nor an integer')
    return read_time(str(time), name)


def read_time(text: str, name: str) -> int:
    """Milliseconds since 1970 of a time in a column or field of this name; `...Ms` takes every number.

    Raises:
        Unreadable
    """
    try:
        time_ms = milliseconds(text, has_unit=name.endswith("Ms"))
    except InvalidValue as error:
        raise Unreadable(f"{name} is {error.details['kind']}", f": {text}. {error.hint}") from None
    if time_ms is None:
        raise Unreadable(f"{name} is not a time", f" such as 2024-05-01T10:00:00Z: {text[:80]!r}")
    return time_ms


def _unless_empty(column: list[T | None]) -> list[T | None] | None:
    return column if column.count(None) < len(column) else None
