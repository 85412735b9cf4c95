"""The remains of deleted subscriptions, removed in steps of bounded size.

A deletion takes away name, cursor and consumers, and as many of the other records as one step may remove. The rest is
noted (PURGES, with the top bit of the key set) and removed by later steps: after the command that has deleted the
subscription, on the way of writes, and by gc. Ids of subscriptions are used once, so no reader meets the remains.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from storage.disk.codec import key1
from storage.disk.connection import Connection
from storage.disk.reserve import ReserveShare
from storage.disk.schema import ACKS, AWAITED, DELAYED, DELAYED_DUE, DELIVERIES, HELD, PENDING, PURGES
from storage.disk.view import ReadView, WriteBatch
from storage.limits import PURGE_STEP_RECORDS

_SUBSCRIPTIONS: Final = 1 << 63
"""Beside ids of topics."""

RECORDS: Final = (DELIVERIES, ACKS, AWAITED, HELD, PENDING, DELAYED, DELAYED_DUE)
"""Records of a deleted subscription that are removed in steps."""


def begin(batch: WriteBatch, subscription_id: int) -> None:
    """Remove some records of a subscription whose name and cursor are gone, and note the rest."""
    if _remove_some(batch, subscription_id) <= 0:
        batch.put(PURGES, key1(_SUBSCRIPTIONS + subscription_id), b"")


def step(batch: WriteBatch) -> bool:
    """Remove some records of a deleted subscription; whether more are left to remove."""
    record = batch.first(PURGES, b"", key1(_SUBSCRIPTIONS))
    if record is None:
        return False
    subscription_id = int.from_bytes(record[0], "big") - _SUBSCRIPTIONS
    if _remove_some(batch, subscription_id) > 0:
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
    for key in view.keys(PURGES, start=key1(_SUBSCRIPTIONS)):
        yield int.from_bytes(key, "big") - _SUBSCRIPTIONS


def _is_any(connection: Connection) -> bool:
    with connection.view() as view:
        return next(ids(view), None) is not None


def _remove_some(batch: WriteBatch, subscription_id: int) -> int:
    """Remove records; return the room left within the bound of a step, at most 0 if there may be more records."""
    room, prefix = PURGE_STEP_RECORDS, key1(subscription_id)
    for database in RECORDS:
        batch.close_records(database, prefix)
        room -= batch.delete_prefix(database, prefix, room)
        if room <= 0:
            break
    return room
