"""The row of `subscriptions lag`: backlog, verdict, and the transaction that blocks, if one does."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.skipped import HeldBack
    from storage.reports.stats import Blocker, ConsumerRow, OneSubscription, PendingIn
    from storage.values.position import Position


class LagRow(NamedTuple):
    """A subscription; `blocked_by` is None where no message is blocked, or where messages wait for their key."""

    topic: str
    subscription: str
    as_of_at_ms: int
    type: str
    subscription_isolation_level: str
    on_open: str
    mark_delete_position: Position
    visible: int
    blocked: int
    delayed: int
    uncommitted: int
    pending: int
    unacked_messages: int
    msg_backlog: int
    pending_in: list[PendingIn]
    held_by: list[HeldBack]
    verdict: str
    consumers: list[ConsumerRow]
    max_read_position: Position
    last_confirmed_entry: Position
    blocked_by: Blocker | None


def lag_row(one: OneSubscription) -> LagRow:
    """The row of one subscription."""
    row, stats = one.row, one.row.stats
    waits = stats.blocked and stats.on_open != "skip"
    return LagRow(
        topic=row.topic, subscription=row.subscription, as_of_at_ms=row.as_of_at_ms,
        type=stats.type, subscription_isolation_level=stats.subscription_isolation_level,
        on_open=stats.on_open, mark_delete_position=stats.mark_delete_position,
        visible=stats.visible, blocked=stats.blocked, delayed=stats.delayed, uncommitted=stats.uncommitted,
        pending=stats.pending, unacked_messages=stats.unacked_messages, msg_backlog=stats.msg_backlog,
        pending_in=stats.pending_in, held_by=stats.held_by, verdict=stats.verdict,
        consumers=stats.consumers, max_read_position=one.max_read_position,
        last_confirmed_entry=one.last_confirmed_entry, blocked_by=one.blocked_by if waits else None,
    )  # fmt: skip
