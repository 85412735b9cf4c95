"""The one rule that makes a message of a row: for every format, engine and command.

A row becomes a message whose value is the row as JSON, or one of its columns. A row that cannot be a message has a
`problem`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from storage.errors import InvalidValue
from storage.limits import MESSAGE_BYTES_MAX
from txnctl.files.cells import TimeText, as_bytes, as_text
from txnctl.input.json_object import Unreadable
from txnctl.input.message_lines import read_time


@dataclass(frozen=True)
class MessageColumns:
    """The input columns for the value (None: the whole row as JSON), the key, the event time."""

    value: str | None = None
    key: str | None = None
    event_time: str | None = None

    def distinct_names(self) -> list[str]:
        """The given names, without duplicates."""
        return list(dict.fromkeys(filter(None, (self.value, self.key, self.event_time))))

    def check_among(self, names: list[str]) -> None:
        """Check that the given columns are among those of a file.

        Raises:
            InvalidValue
        """
        for name in self.distinct_names():
            if name not in names:
                raise InvalidValue(
                    f"there is no column {name}", hint=f"The columns are {', '.join(names)}.", column=name
                )


class FileMessage(NamedTuple):
    """A message, or a problem.

    Attributes:
        event_time_ms: milliseconds since 1970.
        problem: the reason why the row is no message.
        place: where in the row, after the problem.
    """

    key: bytes | None
    value: bytes | None
    event_time_ms: int | None
    problem: str | None = None
    place: str = ""


def bad_row(problem: str, place: str = "") -> FileMessage:
    """Return the row that is no message."""
    return FileMessage(None, None, None, problem, place)


def message_row(
    columns: MessageColumns, whole: Callable[[], str | bytes], cell: Callable[[str], object]
) -> FileMessage:
    """Make a message of a row, or name the problem.

    Args:
        whole: the row as JSON.
        cell: the value of a column.
    """
    try:
        key = None if columns.key is None else as_bytes(cell(columns.key))
        value = as_bytes(whole() if columns.value is None else cell(columns.value))
        time = None if columns.event_time is None else cell(columns.event_time)
        at_ms = None if columns.event_time is None else _milliseconds(columns.event_time, time)
    except Unreadable as error:
        return bad_row(error.reason, error.place)
    if value is None:
        return bad_row(f"{columns.value} is empty")
    if len(value) + len(key or b"") > MESSAGE_BYTES_MAX:
        return bad_row(f"larger than a message may be, {MESSAGE_BYTES_MAX:,} bytes")
    return FileMessage(key, value, at_ms)


def _milliseconds(name: str, cell: object) -> int | None:
    """The time of a cell in milliseconds since 1970; None for an empty one.

    Raises:
        Unreadable: it is not a time, or a number that is mostly meant otherwise.
    """
    text = as_text(cell)
    if not text:
        return None
    if type(cell) is TimeText and "T" in cell and not cell.endswith("Z"):
        # A typed time without a zone is in UTC, as in the text of the row.
        text += "Z"
    return read_time(text, name)
