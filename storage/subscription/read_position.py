"""Read positions: the position after which a reader or a new subscription begins to read."""

from __future__ import annotations

from storage.errors import InvalidPosition
from storage.subscription.isolation import IsolationLevel, bound
from storage.topic.state import TopicState
from storage.values.position import EARLIEST, Extreme, MessageId, Position


def start_after(
    head: TopicState, start: Position | MessageId | Extreme, level: IsolationLevel
) -> tuple[int, int]:
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
            return (head.first_ledger, -1)
        return tuple(bound(level, head.max_read, head.last_confirmed))  # type: ignore[return-value]
    return (start.ledger_id, max(start.entry_id, 0) - 1)


def subscription_start(
    head: TopicState, start: Position | MessageId | Extreme, level: IsolationLevel
) -> tuple[tuple[int, int], MessageId | None]:
    """Where a subscription starts: after which position, and at which message if that lies inside a batch.

    It lies within the topic, so that whatever is sent later is in the subscription's backlog.
    """
    after = max(min(start_after(head, start, level), head.last_confirmed), (head.first_ledger, -1))
    return after, start if isinstance(start, MessageId) and start.batch_index > 0 else None
