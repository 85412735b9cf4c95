"""A value of an option that follows from the present time, as the age `2h`: known when the store's clock can be asked.

On a server the clock of the server counts, and the client's may be off by hours.
"""

from __future__ import annotations

from typing import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


T = TypeVar("T")
R = TypeVar("R")


class OfNow:
    """See the module. `Context` puts the value in the place of this one before a command's body runs."""

    __slots__ = ("_made",)

    def __init__(self, made: Callable[[int], Any]) -> None:
        """Args:
        made: gives the value for a present time, in milliseconds since 1970.
        """
        self._made = made

    def at(self, now_ms: int) -> Any:
        """The value at a present time."""
        return known(self._made(now_ms), now_ms)


def age(age_ms: int) -> OfNow:
    """The time that long ago, in milliseconds since 1970."""
    return OfNow(lambda now_ms: max(0, now_ms - age_ms))


def mapped(value: T | OfNow, made: Callable[[T], R]) -> R | OfNow:
    """`made` of a value, at once or as soon as the value is known."""
    return OfNow(lambda now_ms: made(value.at(now_ms))) if isinstance(value, OfNow) else made(value)


def known(value: Any, now_ms: int) -> Any:
    """The value at a present time; every value but `OfNow` is known already."""
    return value.at(now_ms) if isinstance(value, OfNow) else value
