"""Points in time as typed, in options, columns and fields, and in headings of reports.

RFC 3339 is written by storage.values.timestamps.
"""

from __future__ import annotations

from storage.errors import InvalidValue
from storage.values.timestamps import TIME_MS_MAX, rfc3339

NOW = -1
"""The newest moment in the history of tables, whose version may be ahead of the clock."""


def clock_time(time_ms: int | None) -> str:
    """1700000000123 as `22:13:20Z`, for the head of a report."""
    full = rfc3339(time_ms)
    return "-" if full is None else f"{full[11:19]}Z"


MISMEANT = {
    (10**7, 10**8): "A date is written 2024-05-01.",
    (10**8, 10**10): "A time in seconds has three more digits as milliseconds.",
    (1900_01_01_00_00, 2100_00_00_00_00): "A date with a time is written 2024-05-01T10:00Z.",
    (1900_01_01_00_00_00, 2100_00_00_00_00_00): "A date with a time is written 2024-05-01T10:00:00Z.",
}
"""Numbers that are mostly meant otherwise than as milliseconds since 1970, where they are in the first months of 1970,
in 1976, or in 2572 and later: the first one, the one after the last, and a hint. The one rule of every door: option,
column, field, Spark."""


def milliseconds(text: str, *, has_unit: bool = False) -> int | None:
    """RFC 3339 with a zone, a date (midnight UTC), or an integer of milliseconds; None for any further text.

    Args:
        has_unit: the place of the text is named after milliseconds (`eventTimeMs`), so that every number is meant.

    Raises:
        InvalidValue: a number of 9 or 10 digits, mostly a time in seconds, or of 8, 12 or 14 digits that look like a
            date; a time before 1970. The detail `kind` says which of them.
    """
    if text.isdecimal() and text.isascii():
        value = int(text) if len(text) < 16 else TIME_MS_MAX + 1
        for (first, end), hint in MISMEANT.items():
            if first <= value < end and not has_unit:
                raise _misread(text, f"a time in {str(rfc3339(value))[:4]}, in milliseconds", hint)
        return value if value <= TIME_MS_MAX else None
    from datetime import UTC, datetime, timedelta

    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        if len(text) != len("2024-05-01"):
            return None
        at = at.replace(tzinfo=UTC)
    value = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    if value < 0:
        raise _misread(text, "a time before 1970", "Times before 1970 are not kept.")
    return value if value <= TIME_MS_MAX else None


def _misread(text: str, kind: str, hint: str) -> InvalidValue:
    return InvalidValue(f"{text} is {kind}", hint=hint, kind=kind)


def moment(text: str) -> int | None:
    """A point in the history of tables, in nanoseconds since 1970; None for any further text.

    The text is `now`, for NOW; a version, of more than 15 digits; or a time, as for `milliseconds`, which means the end
    of the millisecond.

    Raises:
        InvalidValue: as `milliseconds`.
    """
    if text == "now":
        return NOW
    if text.isascii() and text.isdecimal() and 15 < len(text) < 20:
        return int(text)
    at_ms = milliseconds(text)
    return None if at_ms is None else at_ms * 1_000_000 + 999_999
