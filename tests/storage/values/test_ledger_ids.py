"""Ids of ledgers in the lives of a store."""

from __future__ import annotations

import pytest

from storage import Position
from storage.values.ledger_ids import LOWEST, first_of_life, is_between_lives, is_next, may_begin_life

AT = 1_700_000_000_123_456_789
BEGIN = 1_700_000_000_123_000


def test_a_life_begins_at_its_time_and_behind_all_ledgers_of_before() -> None:
    """Also with a clock that was set back, or never set."""
    assert first_of_life(AT, 7) == BEGIN
    assert first_of_life(AT, BEGIN) == BEGIN + 1000
    assert first_of_life(AT, BEGIN + 1001) == BEGIN + 2000
    assert first_of_life(0, 1) == LOWEST
    assert all(may_begin_life(first_of_life(at, 3)) for at in (0, AT))


@pytest.mark.parametrize(
    ("before", "ledger_id", "is_dense"),
    [(1, 2, True), (1, 3, False), (2, 2, False), (1, 1000, False), (1, BEGIN, True), (1, BEGIN + 1, False),
     (BEGIN, BEGIN + 1, True), (BEGIN + 7, BEGIN, False)],
)  # fmt: skip
def test_ids_are_dense_but_between_lives(before: int, ledger_id: int, is_dense: bool) -> None:
    """A step to any other ledger tells that one is missing."""
    assert is_next(before, ledger_id) is is_dense


@pytest.mark.parametrize(
    ("position", "is_between"),
    [
        ((3, 4), False),
        ((3, 5), True),
        ((4, -1), False),
        ((4, 0), True),
        ((99, -1), True),
        ((BEGIN, -1), False),
    ],
)
def test_what_lies_between_two_lives(position: tuple[int, int], is_between: bool) -> None:
    """All behind the last entry; the begin of the ledger after it is as good as that entry."""
    assert is_between_lives(Position(*position), Position(3, 4), BEGIN) is is_between
    assert not is_between_lives(Position(*position), Position(3, 4), 4)
