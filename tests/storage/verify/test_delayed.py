"""Verify recounts delayed messages, and compares them with the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import EARLIEST, Position, Store, SubscriptionType
from storage.disk.schema import DELAYED, DELAYED_DUE
from storage.disk.view import WriteBatch
from storage.process.clock import ManualClock
from storage.subscription import catalogue as subscriptions
from storage.subscription.delayed import DelayedEntry
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics

AT = Position(1, 0)
Opened = OpenSubscription[WriteBatch]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with two delayed messages of one entry, that is not verified at the end."""
    place, clock = str(tmp_path / "store"), ManualClock()
    Store.create(place, clock=clock)
    with Store.open(place, clock=clock) as opened:
        opened.create_topic("t")
        consumer = opened.subscribe(
            "t", "s", subscription_type=SubscriptionType.SHARED, initial_position=EARLIEST
        )
        opened.create_producer("t").send_batch([b"a", b"b"], deliver_after=[5, 6])
        assert list(consumer.receive_batch(9, timeout=0)) == []
        assert opened.maintenance.verify_store(full=True) == []
        yield opened


def other_time(opened: Opened) -> None:
    due = _entry(opened).due
    opened.delayed.remove(AT, 0b11)
    opened.delayed.postpone(AT, 2, {due_ms + 1: messages for due_ms, messages in due.items()})


def _entry(opened: Opened) -> DelayedEntry:
    ((key, payload),) = opened.view.scan(DELAYED)
    return DelayedEntry.decode(key, payload)


def without_index(opened: Opened) -> None:
    opened.view.delete(DELAYED_DUE, next(iter(opened.view.keys(DELAYED_DUE))))


def without_record(opened: Opened) -> None:
    opened.view.delete(DELAYED, next(iter(opened.view.keys(DELAYED))))


def miscounted(opened: Opened) -> None:
    opened.cursor.delayed += 1


def acknowledged_too(opened: Opened) -> None:
    entry = _entry(opened)
    opened.acks.acknowledge(AT, 2, 0b01)
    opened.delayed.postpone(AT, 2, {min(entry.due): 0b01})


def of_an_ordered_type(opened: Opened) -> None:
    opened.subscription.type = SubscriptionType.EXCLUSIVE
    subscriptions.save(opened.view, opened.subscription)


def unread(opened: Opened) -> None:
    opened.cursor.read = Position(1, -1)


@pytest.mark.parametrize(
    ("damage", "invariant"),
    [
        (other_time, 19), (without_index, 23), (without_record, 23), (miscounted, 23), (acknowledged_too, 7),
        (of_an_ordered_type, 23), (unread, 19),
    ],
)  # fmt: skip
def test_damage_is_named(store: Store, damage: Callable[[Opened], None], invariant: int) -> None:
    def change(batch: WriteBatch) -> None:
        damage(OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "s")))

    store.connection.write(change)
    assert invariant in {problem.invariant for problem in store.maintenance.verify_store(full=True)}
