"""Spans of time in error messages: exact, and as an option of the command line takes them."""

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


def given_duration(value: object) -> str:
    """A value that was given for a number of milliseconds, for the end of an error."""
    return duration_text(value) if type(value) is int else repr(value)
