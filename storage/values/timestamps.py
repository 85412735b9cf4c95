"""Timestamps of reports: milliseconds since 1970 inside, RFC 3339 in UTC outside."""

from __future__ import annotations

from time import gmtime

TIME_MS_MAX = 253_402_300_799_999
"""The last millisecond of the year 9999, the end of RFC 3339."""


def rfc3339(time_ms: int | None) -> str | None:
    """Format 1700000000123 as `2023-11-14T22:13:20.123Z`; None for a time without such a form."""
    if time_ms is None or not 0 <= time_ms <= TIME_MS_MAX:
        return None
    at = gmtime(time_ms // 1000)
    return f"{at[0]:04d}-{at[1]:02d}-{at[2]:02d}T{at[3]:02d}:{at[4]:02d}:{at[5]:02d}.{time_ms % 1000:03d}Z"


def both(name: str, time_ms: int | None) -> dict[str, object]:
    """The two fields of one instant: `both("begin", ms)` is `{"beginAt": ..., "beginMs": ...}`."""
    return {f"{name}At": rfc3339(time_ms), f"{name}Ms": time_ms}
