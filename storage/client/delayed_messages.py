"""The delayed messages of a subscription, for a consumer that finds no more: how many, and when the next one is due."""

from __future__ import annotations

from storage.disk.view import ReadView
from storage.subscription.open_subscription import OpenSubscription
from storage.subscription.subscription import Subscription
from storage.values.named_tuple import NamedTuple


class DelayedMessages(NamedTuple):
    """The messages that dispatch has passed before their delivery time.

    Attributes:
        messages: their number, those that are due by now left out.
        due_ms: the earliest delivery time, in milliseconds since 1970.
    """

    messages: int
    due_ms: int


def find_delayed(view: ReadView, subscription: Subscription) -> DelayedMessages | None:
    """The delayed messages of a subscription; None where none is waiting for its time."""
    delayed, now_ms = OpenSubscription(view, subscription).delayed, view.clock.wall_ms()
    messages, due_ms = delayed.waiting(now_ms), delayed.next_due_ms(after_ms=now_ms)
    return None if not messages or due_ms is None else DelayedMessages(messages, due_ms)
