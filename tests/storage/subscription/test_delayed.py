"""Delayed messages: records by position and by due time, and the cursor's count."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Position, Store, SubscriptionType
from storage.disk.schema import DELAYED, DELAYED_DUE
from storage.disk.view import WriteBatch
from storage.errors import CorruptStore
from storage.subscription import catalogue as subscriptions, delayed
from storage.subscription.cursor import Cursor
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics

FIRST, SECOND, THIRD = Position(1, 0), Position(1, 1), Position(2, 0)
Opened = OpenSubscription[WriteBatch]


@pytest.fixture
def tried(store: Store) -> Callable[[Callable[[Opened], None]], None]:
    """Run a check on the subscription `s` in a batch that is dropped."""
    store.subscribe("t", "s", subscription_type=SubscriptionType.SHARED).close()

    def run(check: Callable[[Opened], None]) -> None:
        def change(batch: WriteBatch) -> None:
            check(OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "s")))

        store.connection.write(change, dry_run=True)

    return run


def filled(opened: Opened) -> delayed.Delayed[WriteBatch]:
    """Five messages of three entries."""
    opened.delayed.postpone(FIRST, 3, {20: 0b011, 30: 0b100})
    opened.delayed.postpone(SECOND, 1, {10: 0b1})
    opened.delayed.postpone(THIRD, 1, {20: 0b1})
    return opened.delayed


def test_counts_follow_the_records(tried: Callable[[Callable[[Opened], None]], None]) -> None:
    def check(opened: Opened) -> None:
        messages = filled(opened)
        assert (opened.cursor.delayed, messages.next_due_ms()) == (5, 10)
        assert [messages.waiting(now_ms) for now_ms in (9, 10, 20, 30)] == [5, 4, 1, 0]
        messages.remove(FIRST, 0b101)
        assert (opened.cursor.delayed, messages.at(FIRST)) == (3, 0b010)
        messages.remove(FIRST, 0b101)
        messages.remove(SECOND, 0b1)
        assert (opened.cursor.delayed, messages.next_due_ms()) == (2, 20)
        messages.remove_through(Position(1, 5))
        assert [entry.at for entry in delayed.every(opened.view, opened.subscription_id)] == [THIRD]
        messages.clear()
        assert (opened.cursor.delayed, messages.next_due_ms()) == (0, None)
        assert (opened.view.count(DELAYED), opened.view.count(DELAYED_DUE)) == (0, 0)

    tried(check)


def test_those_due_first_are_taken_first(tried: Callable[[Callable[[Opened], None]], None]) -> None:
    """Entries until there is enough, and of each everything that is due; in order of position."""

    def check(opened: Opened) -> None:
        messages = filled(opened)
        assert messages.due(9, 10) == {}
        assert not messages.is_due(9)
        assert messages.due(10, 10) == {SECOND: 1}
        assert messages.due(25, 1) == {SECOND: 1}
        assert list(messages.due(25, 2).items()) == [(FIRST, 0b011), (SECOND, 1)]
        assert list(messages.due(30, 10).items()) == [(FIRST, 0b111), (SECOND, 1), (THIRD, 1)]

    tried(check)


def test_a_missing_record_is_noticed(tried: Callable[[Callable[[Opened], None]], None]) -> None:
    """Counted and not found, in the index or not by position, is corrupt: the message would never come."""

    def check(opened: Opened) -> None:
        messages, prefix = filled(opened), opened.subscription_id.to_bytes(8, "big")
        opened.view.delete_prefix(DELAYED, prefix)
        for ask in (lambda: messages.due(10, 1), lambda: messages.waiting(10)):
            with pytest.raises(CorruptStore, match="it is not there"):
                ask()
        opened.view.delete_prefix(DELAYED_DUE, prefix)
        with pytest.raises(CorruptStore, match="the subscription has 5"):
            messages.next_due_ms()

    tried(check)


def test_a_cursor_without_delayed_messages_keeps_its_bytes() -> None:
    """The count is an element at the end that is there only where it counts something."""
    lengths = []
    for count in (0, 1):
        cursor = Cursor(Position(1, -1))
        cursor.delayed = count
        lengths.append(cursor.encode()[0])
    assert lengths == [0x9D, 0x9E]
