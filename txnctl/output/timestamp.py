"""Points in time: milliseconds since 1970 inside, RFC 3339 in UTC outside."""

from __future__ import annotations

from time import gmtime

TIME_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999, beyond which RFC 3339 has no words."""


def rfc3339(time_ms: int | None) -> str | None:
    """1700000000123 as `2023-11-14T22:13:20.123Z`; what has no such form is None."""
    if time_ms is None or not 0 <= time_ms <= TIME_MS_MAX:
        return None
    at = gmtime(time_ms // 1000)
    return f"{at[0]:04d}-{at[1]:02d}-{at[2]:02d}T{at[3]:02d}:{at[4]:02d}:{at[5]:02d}.{time_ms % 1000:03d}Z"


def clock_time(time_ms: int | None) -> str:
    """1700000000123 as `22:13:20Z`, for the head of a report."""
    full = rfc3339(time_ms)
    return "-" if full is None else f"{full[11:19]}Z"


def both(name: str, time_ms: int | None) -> dict[str, object]:
    """The two fields of one instant: `both("begin", ms)` is `{"beginAt": ..., "beginMs": ...}`."""
    return {f"{name}At": rfc3339(time_ms), f"{name}Ms": time_ms}


def milliseconds(text: str) -> int | None:
    """RFC 3339 with a zone, a date (midnight UTC), or an integer of milliseconds; None where it is none of these."""
    if text.isdecimal() and text.isascii():
        value = int(text) if len(text) < 16 else TIME_MS_MAX + 1
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
    return value if 0 <= value <= TIME_MS_MAX else None
