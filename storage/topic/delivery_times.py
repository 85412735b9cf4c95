"""Delivery times: the wall times before which Shared and Key_Shared subscriptions do not deliver messages.

A delay is turned into a wall time at the send, whenever the transaction of the message commits.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage.errors import InvalidValue
from storage.topic.entry import NS_PER_MS
from storage.values.arguments import check_delay_ns, check_many

Delays = float | Sequence[float | None] | None
"""Seconds: one number for all messages, or one for each, None for a message without a delay."""

Times = int | Sequence[int | None] | None
"""Milliseconds since 1970: one number for all messages, or one for each, None for a message without a time."""


def delivery_times(
    now_ms: int, values: Sequence[bytes | None], deliver_after: Delays, deliver_at: Times
) -> Sequence[int | None]:
    """Return the delivery time of each message.

    Args:
        now_ms: wall time of the send.
        values: the messages.

    Raises:
        InvalidValue: both delays and times, a negative delay or one beyond 100 years, or a list of a different length.
    """
    check_many("values", values)
    if deliver_after is None:
        times: Sequence[int | None] = (
            deliver_at if isinstance(deliver_at, Sequence) else [deliver_at] * len(values)
        )
        return times
    if deliver_at is not None:
        raise InvalidValue("a message has a delay or a delivery time, not both")
    if isinstance(deliver_after, Sequence):
        return [due_after(now_ms, delay) for delay in deliver_after]
    return [due_after(now_ms, deliver_after)] * len(values)


def due_after(now_ms: int, delay: float | None) -> int | None:
    """The first millisecond at which a delay in seconds has passed.

    Raises:
        InvalidValue: a negative delay, or one beyond 100 years.
    """
    return None if delay is None else now_ms - -check_delay_ns("a delay", delay) // NS_PER_MS
