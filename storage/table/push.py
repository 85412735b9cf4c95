"""Push: decide which of two transactions that meet over a key is aborted. Pure.

The lower priority loses; if equal, the older timestamp. No transaction ever waits (K2-3SI).
"""

from __future__ import annotations

from storage.errors import CorruptStore
from storage.txn.options import Priority

RANKS = {priority.value: rank for rank, priority in enumerate(Priority)}
"""The higher the priority, the lower the number."""


def wins(priority: str, timestamp: int, other_priority: str, other_timestamp: int) -> bool:
    """Whether the first of two transactions survives. Asked from either side, the outcome is the same."""
    if timestamp == other_timestamp:
        raise CorruptStore(f"timestamp {timestamp} was issued to two transactions (invariant 16)")
    rank, other_rank = RANKS[priority], RANKS[other_priority]
    return rank < other_rank if rank != other_rank else timestamp > other_timestamp
