"""The name nearest to one that does not exist. Loaded for such an error alone."""

from __future__ import annotations

from difflib import get_close_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_SIMILAR = 0.5


def nearest(given: str, names: Iterable[str], similar: float = _SIMILAR) -> str | None:
    """The name most like the given one, in any case and with `-` or `_`; None if none is.

    Args:
        similar: the least likeness, from 0 to 1.
    """
    plain = {_plain(name): name for name in names}
    near = get_close_matches(_plain(given), plain, 1, similar)
    return plain[near[0]] if near else None


def did_you_mean(given: str, names: Iterable[str]) -> str:
    """`Did you mean usage? `, with a blank behind; empty if no name is near."""
    near = nearest(given, names)
    return "" if near is None else f"Did you mean {near}? "


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
