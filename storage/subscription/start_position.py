"""Read positions: the position after which a reader or a new subscription begins to read."""

from __future__ import annotations

from storage.errors import InvalidPosition
from storage.subscription.isolation import IsolationLevel, bound
from storage.topic.state import TopicState
from storage.values.position import EARLIEST, Extreme, MessageId, Position, Start


def start_after(state: TopicState, start: Start, level: IsolationLevel) -> Position:
    """The position after which reading begins.

    `latest` is just after maxReadPosition at READ_COMMITTED, so that a new subscriber misses nothing that commits
    later, and just after lastConfirmedEntry at READ_UNCOMMITTED.
    """
    if isinstance(start, Position | MessageId) and not (
        0 <= start.ledger_id < 1 << 63 and -1 <= start.entry_id < 1 << 63
    ):
        raise InvalidPosition(f"{start} lies in no topic")
    if isinstance(start, Extreme):
        if start is EARLIEST:
            return Position(state.first_ledger, -1)
        return bound(level, state.max_read, state.last_confirmed)
    return Position(start.ledger_id, max(start.entry_id, 0) - 1)


def subscription_start(
    state: TopicState, start: Start, level: IsolationLevel, first: Position | None = None
) -> tuple[Position, MessageId | None]:
    """The position after which a subscription starts, and the first message if that lies inside a batch.

    The position lies within the topic, so that every later message is in the subscription's backlog.

    Args:
        first: the position before the first message, where the subscription reads a compacted view that begins before
            the log.
    """
    first = first or Position(state.first_ledger, -1)
    after = first if start is EARLIEST else start_after(state, start, level)
    after = max(min(after, state.last_confirmed), first)
    return after, start if isinstance(start, MessageId) and start.batch_index > 0 else None
