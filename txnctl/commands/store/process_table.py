"""Cells of tables about processes."""

from __future__ import annotations

_HOLDER_MAX = 60
"""Characters of a process in words that the tables show; JSON has all of it."""


def pid_cell(pid: int | None) -> str | None:
    """A process id as a name, not a quantity: 48211, not 48,211."""
    return None if pid is None else str(pid)


def holder_cell(holder: str | None) -> str | None:
    """A long name up to the word that still fits: `process 48211 (nightly load of ...)`."""
    if holder is None or len(holder) <= _HOLDER_MAX:
        return holder
    words, closed = holder[: _HOLDER_MAX - 5].rpartition(" ")[0], ")" if "(" in holder else ""
    return f"{words} ...{closed}"
