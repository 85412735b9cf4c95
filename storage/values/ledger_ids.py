"""Ids of ledgers: dense within a life of the store; a restore, a copy or a failover begins a life far behind. Pure.

The ids of a life begin at the time of its begin, in microseconds, at a multiple of `STEP`. So no life gives an id that
another one gave, and the step over the ids in between is told from a missing ledger.
"""

from __future__ import annotations

from typing import Final

from storage.values.position import Position

STEP: Final = 1000
"""The first id of a life is a multiple."""

LOWEST: Final = 1_000_000_000_000
"""The lowest first id of a life but the store's first life, which begins at 1."""


def first_of_life(timestamp_ns: int, highest: int) -> int:
    """The first id of a life that begins at a time, behind the highest id of the life before."""
    return max(timestamp_ns // 1000, highest + STEP, LOWEST) // STEP * STEP


def may_begin_life(ledger_id: int) -> bool:
    """Whether the ledger before may have any lower id."""
    return ledger_id >= LOWEST and ledger_id % STEP == 0


def is_next(before: int, ledger_id: int) -> bool:
    """Whether a ledger may be the next one after an id."""
    return ledger_id == before + 1 or (ledger_id > before and may_begin_life(ledger_id))


def is_between_lives(position: Position, end: Position, following: int) -> bool:
    """Whether a position lies behind the last entry of a life, and before the first ledger of the next one.

    Args:
        end: the last entry of the ledger of the position, or of the last ledger before.
        following: the ledger after that one.
    """
    begins_next = position == (end[0] + 1, -1)  # as good as `end`
    return position > end and not begins_next and position[0] < following != end[0] + 1
