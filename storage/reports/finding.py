"""A finding: something that is wrong with a store, or good to know, as a row; and the words that findings share."""

from __future__ import annotations

from typing import Any

Facts = dict[str, Any]
Row = dict[str, Any]

SHOWN = 5
"""Names of one kind that a sentence lists."""


def finding(code: str, about: str, what: str, why: str, command: str, severity: str = "warning") -> Row:
    """One finding as a row."""
    return {"code": code, "severity": severity, "about": about, "what": what, "why": why, "command": command}


def several(number: int, noun: str) -> str:
    """`1 message`, `5,688 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def some(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
