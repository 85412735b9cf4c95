"""The rows of a batch that an upsert stores: of several rows of one key the one of the highest order.

Rows of a key may come from several tasks, so the driver compares all rows of the batch: it holds key and order of each
row meanwhile. Without an order, or with the same one, none of two rows is the later one: that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from storage.errors import InvalidValue

_SHOWN_BYTES = 40


class OrderedRow(NamedTuple):
    """A row of an upsert: the value is None where the key is deleted, the order None where no column has it."""

    key: bytes
    value: bytes | None
    order: int | None


def latest(read: Callable[[], Iterable[OrderedRow]]) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield key and value of the latest row of each key.

    Args:
        read: reads the rows; called twice.

    Raises:
        InvalidValue: two rows of a key have no order, or the same highest one.
    """
    best: dict[bytes, int | None] = {}
    tied: set[bytes] = set()
    for key, _, order in read():
        if key not in best:
            best[key] = order
            continue
        other = best[key]
        if order is None or other is None:
            raise _undecided(key, "; which is the later one?", "Name a column that says so by orderColumn.")
        if order == other:
            tied.add(key)
        elif order > other:
            best[key] = order
            tied.discard(key)
    if tied:
        key = min(tied)
        why = f" and order {best[key]}: neither is the later one"
        raise _undecided(key, why, "orderColumn has to differ among rows of one key.")
    return ((row.key, row.value) for row in read() if row.order == best[row.key])


def _undecided(key: bytes, why: str, hint: str) -> InvalidValue:
    shown = ascii(key[:_SHOWN_BYTES])[2:-1] + "..." * (len(key) > _SHOWN_BYTES)
    return InvalidValue(
        f"two rows of the batch have key {shown}{why}", hint=f"Nothing was stored. {hint}", key=shown
    )
