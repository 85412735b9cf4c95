"""A name stands once: the rule for `K=V` options, objects of JSON, maps and the headers of files.

Two values under one name leave open which of the two was meant, so that neither is passed over in silence.
"""

from __future__ import annotations

from storage.errors import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeVar

    T = TypeVar("T")


_HINT = "Leave one of them out."


def named_once(pairs: Sequence[tuple[str, T]], place: str = "", hint: str = _HINT) -> dict[str, T]:
    """The values by name; also the `object_pairs_hook` of a decoder of JSON.

    Args:
        place: where the names stand, for the beginning of the error: `--property: `.

    Raises:
        InvalidValue: a name stands twice.
    """
    named = dict(pairs)
    if len(named) != len(pairs):
        check_once([name for name, _ in pairs], place, hint)
    return named


def check_once(names: Iterable[str], place: str = "", hint: str = _HINT) -> None:
    """Check that no name stands twice.

    Raises:
        InvalidValue
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidValue(f"{place}{name[:80]!r} is given twice", hint=hint, name=name[:80])
        seen.add(name)
