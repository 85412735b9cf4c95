"""Numbers and labels for people: 5,688 messages, 8.4 MiB, 46m58s. Programs get the plain integers as JSON."""

from __future__ import annotations

from storage.values.durations import short_duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN = "-"
_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


NOTHING_KEPT = "0: nothing is kept once acknowledged"
"""A limit of 0 on what is kept."""


def count(number: int | None) -> str:
    """5688 as `5,688`."""
    return UNKNOWN if number is None else f"{number:,}"


def size(byte_count: int | None) -> str:
    """8,808,038 bytes as `8.4 MiB`, 1,032,192 bytes as `1,008 KiB`; below 1,024 as `512 B`.

    A number below 100 has one decimal, a greater one none.
    """
    if byte_count is None:
        return UNKNOWN
    if abs(byte_count) < 1024:
        return f"{byte_count:,} B"
    amount = float(byte_count)
    step = -1
    # 1,023.6 KiB would be rounded to 1,024 KiB: it is 1.0 MiB.
    while abs(amount) >= 1023.5 and step < len(_UNITS) - 1:
        amount /= 1024
        step += 1
    return f"{amount:,.{1 if abs(amount) < 99.95 else 0}f} {_UNITS[step]}"


def duration(milliseconds: int | None) -> str:
    """2,818,000 ms as `46m58s`: the two largest units, truncated, never rounded up."""
    return UNKNOWN if milliseconds is None else short_duration(milliseconds)


def sentence(text: str) -> str:
    """`nobody can write` as `Nobody can write.`"""
    return f"{text[:1].upper()}{text[1:]}."


def plural(number: int, noun: str, several: str | None = None) -> str:
    """`1 message`, `5,688 messages`."""
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def labels_text(labels: Mapping[str, str]) -> str:
    """`job=loader run=7`; no labels are an empty text."""
    return " ".join([f"{name}={value}" for name, value in labels.items()])
