"""The remains of deleted subscriptions, removed in steps of bounded size.

A deletion takes away name, cursor and consumers, and as many of the other records as one step may remove. The rest is
noted (PURGES, with the top bit of the key set) and removed by later steps: after the command that has deleted the
subscription, on the way of writes, and by gc. Ids of subscriptions are used once, so no reader meets the remains.

Delayed messages that a subscription forgets all at once go in the same way (the two top bits of the key set): from then
on the subscription stores them under another number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from storage.disk.codec import key1
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.schema import (
    ACKS,
    AWAITED,
    DELAYED,
    DELAYED_DUE,
    DELIVERIES,
    HELD,
    PENDING,
    PURGES,
    Database,
)
from storage.disk.view import ReadView, WriteBatch
from storage.limits import PURGE_STEP_RECORDS

_SUBSCRIPTIONS: Final = 1 << 63
"""Beside ids of topics."""

_DELAYED: Final = 1 << 62
"""Beside ids of deleted subscriptions: numbers under which a subscription had delayed messages."""

RECORDS: Final = (DELIVERIES, ACKS, AWAITED, HELD, PENDING, DELAYED, DELAYED_DUE)
"""Records of a deleted subscription that are removed in steps."""

DELAYED_RECORDS: Final = (DELAYED, DELAYED_DUE)
"""Those of delayed messages."""


def begin(batch: WriteBatch, subscription_id: int) -> None:
    """Remove some records of a subscription whose name and cursor are gone, and note the rest."""
    if _remove_some(batch, subscription_id) <= 0:
        batch.put(PURGES, key1(_SUBSCRIPTIONS + subscription_id), b"")


def remove_delayed(batch: WriteBatch, delayed_id: int) -> bool:
    """Remove some records of delayed messages stored under a number, and note the rest; whether nothing is left."""
    is_done = _remove_some(batch, delayed_id, DELAYED_RECORDS) > 0
    if not is_done:
        batch.put(PURGES, key1(_SUBSCRIPTIONS + _DELAYED + delayed_id), b"")
    return is_done


def step(batch: WriteBatch) -> bool:
    """Remove some records of a deleted subscription, or of forgotten delayed messages; whether more are left."""
    record = batch.first(PURGES, b"", key1(_SUBSCRIPTIONS))
    if record is None:
        return False
    number = int.from_bytes(record[0], "big") - _SUBSCRIPTIONS
    databases = DELAYED_RECORDS if number >= _DELAYED else RECORDS
    if _remove_some(batch, number % _DELAYED, databases) > 0:
        batch.delete(PURGES, record[0])
    return True


def finish(connection: Connection) -> int:
    """Run steps until nothing is left, each a store transaction; their number. After a kill the next run goes on."""
    steps = 0
    while _is_any(connection) and connection.write(step, share=ReserveShare.WHOLE):
        steps += 1
    return steps


def ids(view: ReadView) -> Iterator[int]:
    """Yield the ids of deleted subscriptions with remains."""
    return (number for number in _noted(view) if number < _DELAYED)


def delayed_ids(view: ReadView) -> Iterator[int]:
    """Yield the numbers under which forgotten delayed messages are stored."""
    return (number - _DELAYED for number in _noted(view) if number >= _DELAYED)


def _noted(view: ReadView) -> Iterator[int]:
    for key in view.keys(PURGES, start=key1(_SUBSCRIPTIONS)):
        yield int.from_bytes(key, "big") - _SUBSCRIPTIONS


def _is_any(connection: Connection) -> bool:
    with connection.view() as view:
        return next(_noted(view), None) is not None


def _remove_some(batch: WriteBatch, subscription_id: int, databases: tuple[Database, ...] = RECORDS) -> int:
    """Remove records; return the room left within the bound of a step, at most 0 if there may be more records."""
    room, prefix = PURGE_STEP_RECORDS, key1(subscription_id)
    for database in databases:
        batch.close_records(database, prefix)
        room -= batch.delete_prefix(database, prefix, room)
        if room <= 0:
            break
    return room
