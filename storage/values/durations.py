"""Spans of time: exact, as an option of the command line takes them, and short, for people to read."""

from __future__ import annotations

_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000))


def duration_text(milliseconds: int) -> str:
    """5,400,000 ms as `90m`, in the largest unit that is exact; no time as `0`."""
    if milliseconds == 0:
        return "0"
    for unit, size in _UNITS_MS:
        if milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms"


def short_duration(milliseconds: int) -> str:
    """2,818,000 ms as `46m58s`: the two largest units, truncated, never rounded up."""
    if milliseconds < 0:
        return "-" + short_duration(-milliseconds)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    if seconds < 86400:
        return f"{seconds // 3600}h{seconds % 3600 // 60:02d}m"
    return f"{seconds // 86400}d{seconds % 86400 // 3600:02d}h"


def given_duration(value: object) -> str:
    """A value that was given for a number of milliseconds, for the end of an error."""
    return duration_text(value) if type(value) is int else repr(value)
