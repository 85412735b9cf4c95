"""Where a subscription starts, or is moved to: a position as typed, with times looked up."""

from __future__ import annotations

from txnctl.params import AtTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.position import Start
    from txnctl.context import Context


def resolved(context: Context, topic: str, start: Start | AtTime) -> Start:
    """The position; of a time, that of the first message published then or later."""
    return context.store.position_at(topic, start.time_ms) if isinstance(start, AtTime) else start
