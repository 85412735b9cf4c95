"""The index of the subscriptions of a topic by markDeletePosition (MARKS, MARK_BOUNDS).

The index has a lower bound of each markDeletePosition. An acknowledgement moves the mark and leaves the bound alone, so
the index costs an acknowledgement nothing. A question for the subscriptions furthest back (`behind.py`) compares bound
and mark of the first entries, and raises bounds that are too low. Only a mark that moves back lowers its bound at once.
So a limit of a topic does not look at every subscription for each message.

Where a subscription has no bound, as in a store of format 1, `is_complete` is False, and all of them are looked at.
"""

from __future__ import annotations

from storage.disk.codec import I64X2, U64, key1, key4
from storage.disk.schema import MARK_BOUNDS, MARKS, SUBSCRIPTIONS
from storage.disk.view import ReadView, WriteBatch
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position


class Bound(NamedTuple):
    """A subscription, and a position at or before its markDeletePosition."""

    at: Position
    subscription_id: int
    name: str


def is_complete(view: ReadView) -> bool:
    """Whether every subscription of the store has a bound: known from the sizes of three databases.

    A store on a server, which would look at each record to count them, has had the index from the beginning.
    """
    numbers = {view.count_at_once(database) for database in (SUBSCRIPTIONS, MARKS, MARK_BOUNDS)}
    return len(numbers) == 1


def put(batch: WriteBatch, topic_id: int, bound: Bound) -> None:
    """Set the bound of a subscription, in place of an earlier one."""
    remove(batch, topic_id, bound.subscription_id)
    batch.put(MARKS, _key(topic_id, bound), bound.name.encode("ascii"))
    batch.put(MARK_BOUNDS, key1(bound.subscription_id), I64X2.pack(*bound.at))


def remove(batch: WriteBatch, topic_id: int, subscription_id: int) -> None:
    """Remove the bound of a subscription, if there is one."""
    at = _of(batch, subscription_id)
    if at is not None:
        batch.delete(MARKS, _key(topic_id, Bound(at, subscription_id, "")))
        batch.delete(MARK_BOUNDS, key1(subscription_id))


def lower(batch: WriteBatch, topic_id: int, subscription_id: int, at: Position) -> None:
    """Lower the bound of a subscription whose markDeletePosition moves back."""
    known = _of(batch, subscription_id)
    if known is not None and at < known:
        name = batch.get(MARKS, _key(topic_id, Bound(known, subscription_id, "")))
        assert name is not None, "a bound is in both databases"
        put(batch, topic_id, Bound(at, subscription_id, bytes(name).decode("ascii")))


def first(view: ReadView, topic_id: int, after: Bound | None = None) -> Bound | None:
    """The lowest bound of a topic, or the next one after a bound."""
    start = None if after is None else _key(topic_id, after) + b"\0"
    record = view.first(MARKS, key1(topic_id), start)
    if record is None:
        return None
    ledger_id, entry, subscription_id = (U64.unpack_from(record[0], at)[0] for at in (8, 16, 24))
    return Bound(Position(ledger_id, entry - 1), subscription_id, bytes(record[1]).decode("ascii"))


def find(view: ReadView, topic_id: int, subscription_id: int) -> Bound | None:
    """The bound of a subscription, as both databases have it; None if one has none."""
    at = _of(view, subscription_id)
    name = None if at is None else view.get(MARKS, _key(topic_id, Bound(at, subscription_id, "")))
    return None if at is None or name is None else Bound(at, subscription_id, bytes(name).decode("ascii"))


def _of(view: ReadView, subscription_id: int) -> Position | None:
    payload = view.get(MARK_BOUNDS, key1(subscription_id))
    return None if payload is None else Position(*I64X2.unpack(payload))


def _key(topic_id: int, bound: Bound) -> bytes:
    return key4(topic_id, bound.at[0], bound.at[1] + 1, bound.subscription_id)
