"""A problem that verification found, and the callbacks that take problems and progress."""

from __future__ import annotations

from collections.abc import Callable

from storage.values.named_tuple import NamedTuple


class Problem(NamedTuple):
    """A violated invariant, or damage.

    Attributes:
        invariant: the number in docs/SEMANTICS.md; None for damage and for bounds without a number.
        object: the topic, transaction, table, ... with the problem.
        message: the observation.
    """

    invariant: int | None
    object: str
    message: str


Report = Callable[[int | None, str, str], None]
"""Called with invariant, object and message of each problem."""

Progress = Callable[[str, int], None]
"""Called with the database or topic being read, and the number of records or entries read since the last call."""

Checked = Callable[[int], None]
"""Called with the number of each invariant that was checked completely."""
