"""The record of a subscription: its bytes, and how far it may deliver."""

from __future__ import annotations

import pytest

from storage import IsolationLevel, OnOpen, Position, SubscriptionType
from storage.disk.codec import key1
from storage.subscription.subscription import Subscription
from storage.topic.state import TopicState


def test_a_subscription_is_read_as_it_was_written() -> None:
    """Topic and name are in the key, everything else is in the record."""
    subscription = Subscription(7, "s", 9)
    subscription.type, subscription.on_open = SubscriptionType.KEY_SHARED, OnOpen.SKIP
    subscription.created_ms, subscription.start = 1234, Position(2, 3)
    subscription.dead_letter_topic, subscription.max_redeliver_count = "persistent://public/default/d", 4
    again = Subscription.decode(key1(7) + b"s", memoryview(subscription.encode()))
    for name in Subscription.__slots__:
        assert getattr(again, name) == getattr(subscription, name)
    assert (again.skips, again.keeps_keys) == (True, True)


@pytest.mark.parametrize(
    ("level", "on_open", "expected"),
    [
        (IsolationLevel.READ_COMMITTED, OnOpen.BLOCK, (1, 2)),
        (IsolationLevel.READ_COMMITTED, OnOpen.SKIP, (1, 5)),
        (IsolationLevel.READ_UNCOMMITTED, OnOpen.BLOCK, (1, 5)),
    ],
)
def test_it_delivers_up_to_the_bound_of_its_level(
    level: IsolationLevel, on_open: OnOpen, expected: tuple[int, int]
) -> None:
    """maxReadPosition where open transactions block, else lastConfirmedEntry."""
    state = TopicState.new(1, -1, 0, (10, 10, 10))
    state.max_read, state.next_entry = Position(1, 2), 6
    subscription = Subscription(7, "s")
    subscription.level, subscription.on_open = level, on_open
    assert subscription.bound(state) == Position(*expected)
