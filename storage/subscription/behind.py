"""The subscriptions of a topic that are behind a position, found by the index of marks (`mark_index.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from storage.disk.view import ReadView, WriteBatch
from storage.subscription import catalogue as subscriptions, cursor as cursors, mark_index
from storage.subscription.mark_index import Bound
from storage.subscription.subscription import Subscription
from storage.values.position import Position, as_position


def subscriptions_behind(view: ReadView, topic_id: int, through: Position) -> Iterator[Subscription]:
    """Yield the subscriptions of a topic with a markDeletePosition before a position.

    The caller may move the mark of the latest subscription yielded, and create or delete no subscription.
    """
    if isinstance(view, WriteBatch) and mark_index.is_complete(view):
        for bound in _exact_bounds(view, topic_id, through):
            yield subscriptions.by_name(view, topic_id, bound.name)
        return
    for subscription in list(subscriptions.every(view, topic_id)):
        if cursors.load(view, subscription.subscription_id).mark_delete < through:
            yield subscription


def subscriptions_in_order(view: ReadView, topic_id: int) -> Iterator[Subscription]:
    """Yield the subscriptions of a topic, those furthest back first as far as their bounds tell."""
    if not mark_index.is_complete(view):
        yield from subscriptions.every(view, topic_id)
        return
    bound = mark_index.first(view, topic_id)
    while bound is not None:
        yield subscriptions.by_name(view, topic_id, bound.name)
        bound = mark_index.first(view, topic_id, bound)


def furthest_back(view: ReadView, topic_id: int) -> Bound | None:
    """The lowest markDeletePosition of a topic, and the first subscription there; None without subscriptions."""
    if isinstance(view, WriteBatch) and mark_index.is_complete(view):
        return next(_exact_bounds(view, topic_id, None), None)
    marks = (
        Bound(_mark(view, subscription.subscription_id), subscription.subscription_id, subscription.name)
        for subscription in subscriptions.every(view, topic_id)
    )
    return min(marks, default=None)


def lowest_ledger(view: ReadView, topic_id: int) -> int:
    """A ledger below which no subscription of a topic has its markDeletePosition; 0 where none is known."""
    lowest = mark_index.first(view, topic_id) if mark_index.is_complete(view) else None
    return 0 if lowest is None else lowest.at.ledger_id


def catch_up(batch: WriteBatch, topic_id: int, through: Position | None, limit: int) -> bool:
    """Raise bounds until the lowest bound equals its markDeletePosition, or is not before a position.

    Args:
        through: the position; None raises bounds until the lowest bound equals its mark.
        limit: bounds to raise at most.

    Returns:
        Whether the limit came first, and another step has work.
    """
    if not mark_index.is_complete(batch):
        return False
    bound = mark_index.first(batch, topic_id)
    while bound is not None and (through is None or bound.at < through):
        mark = _mark(batch, bound.subscription_id)
        if mark == bound.at:
            return False
        if limit <= 0:
            return True
        mark_index.put(batch, topic_id, bound._replace(at=mark))
        limit -= 1
        bound = mark_index.first(batch, topic_id)
    return False


def _exact_bounds(batch: WriteBatch, topic_id: int, through: Position | None) -> Iterator[Bound]:
    """Yield bounds equal to their markDeletePosition, in order, up to a position."""
    bound = mark_index.first(batch, topic_id)
    while bound is not None and (through is None or bound.at < through):
        mark = _mark(batch, bound.subscription_id)
        if mark == bound.at:
            yield bound
        else:
            mark_index.put(batch, topic_id, bound._replace(at=mark))
        bound = mark_index.first(batch, topic_id, bound)


def _mark(view: ReadView, subscription_id: int) -> Position:
    return as_position(cursors.load(view, subscription_id).mark_delete)
