"""A finding: a problem of a store, or a fact worth knowing, and the words that findings share."""

from __future__ import annotations

from storage.actions import Action
from storage.values.named_tuple import NamedTuple

SHOWN = 5
"""Names of one kind that a sentence lists."""


class Finding(NamedTuple):
    """One finding.

    Attributes:
        code: stable.
        severity: `critical`, `warning` or `info`.
        about: the object.
        what, why: in plain words; `why` may be a hint.
        action: the next one.
    """

    code: str
    severity: str
    about: str
    what: str
    why: str
    action: Action


def warning(code: str, about: str, what: str, why: str, action: Action) -> Finding:
    """A finding about work that waits."""
    return Finding(code, "warning", about, what, why, action)


def several(number: int, noun: str) -> str:
    """`1 message`, `5,688 messages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(parts: list[str]) -> str:
    """`messages of orders`, `acknowledgements and keys of accounts`, `a, b and c`."""
    return " and ".join([part for part in (", ".join(parts[:-1]), *parts[-1:]) if part])


def some(names: list[str]) -> str:
    """The first names, and the number of further ones."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
