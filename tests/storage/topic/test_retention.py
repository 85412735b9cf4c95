"""Retention limits: which ones hold for a topic, dead-letter topics apart."""

from __future__ import annotations

from storage import EARLIEST, Store
from storage.process.clock import ManualClock

DAY_MS = 86_400_000


def bury(store: Store, count: int) -> None:
    """Send messages to `t`, and let subscription `a` give each to its dead-letter topic."""
    with store.create_producer("t", connected=False) as producer:
        for number in range(count):
            producer.send(b"%d" % number)
    with store.subscribe("t", "a", initial_position=EARLIEST, max_redeliver_count=0) as consumer:
        while messages := consumer.receive_batch(99, timeout=0):
            for message in messages:
                consumer.negative_acknowledge(message, delay=0)


def letters(store: Store, name: str = "t-a-DLQ") -> int:
    return len(list(store.reader(name)))


def collect(store: Store) -> int:
    return store.maintenance.collect_garbage().collected.messages_trimmed


class TestDeadLetters:
    """A dead-letter topic has no subscription that would hold its messages."""

    def test_the_limits_of_the_store_leave_dead_letters_alone(self, store: Store) -> None:
        """They would go the moment they arrive, and nobody would ever have seen them."""
        store.admin.settings.set_retention(time_ms=0)
        bury(store, 3)
        assert collect(store) == 3, "the originals, which are acknowledged"
        assert letters(store) == 3
        assert store.reports.topic_retention("t-a-DLQ").in_force[:2] == (None, None)
        assert store.reports.topic_retention("t").in_force[:2] == (0, None)

    def test_dead_letters_have_limits_of_their_own(self, store: Store, clock: ManualClock) -> None:
        """For all dead-letter topics, also where the store has no limit for the rest."""
        store.admin.settings.set_dead_letter_retention(time_ms=DAY_MS)
        bury(store, 3)
        clock.advance(DAY_MS / 1000 - 60)
        assert (collect(store), letters(store)) == (0, 3)
        clock.advance(120)
        assert (collect(store), letters(store)) == (3, 0)
        assert len(list(store.reader("t", start=EARLIEST))) == 3, "the store has no limit for the rest"

    def test_a_topic_of_letters_may_have_its_own(self, store: Store) -> None:
        bury(store, 3)
        store.admin.settings.set_dead_letter_retention(time_ms=DAY_MS)
        store.admin.topics.set_retention("t-a-DLQ", time_ms=0)
        assert (collect(store), letters(store)) == (3, 0)
        store.admin.topics.set_retention("t-a-DLQ", time_ms="store")
        assert store.reports.topic_retention("t-a-DLQ").in_force[:2] == (DAY_MS, None)

    def test_letters_are_redriven_under_a_limit_of_the_store(self, store: Store) -> None:
        """The limit takes what is acknowledged from the topic, and leaves the letters: redrive finds them."""
        bury(store, 3)
        store.admin.settings.set_retention(time_ms=DAY_MS)
        assert collect(store) == 0
        redriven = store.admin.subscriptions.redrive_dead_letters("t", "a").effects.change
        assert redriven.redriven == 3
        with store.subscribe("t", "a") as consumer:
            assert len(consumer.receive_batch(9, timeout=0)) == 3

    def test_redrive_goes_on_behind_letters_that_are_gone(self, store: Store, clock: ManualClock) -> None:
        """Letters that the limit took were examined for good; later ones come back."""
        bury(store, 2)
        assert store.admin.subscriptions.redrive_dead_letters("t", "a", 1).effects.change.redriven == 1
        store.admin.settings.set_dead_letter_retention(time_ms=0)
        assert collect(store) == 2
        assert store.admin.subscriptions.redrive_dead_letters("t", "a").effects.change.redriven == 0
        store.admin.settings.set_dead_letter_retention(time_ms="unset")
        bury(store, 1)
        assert letters(store) == 2, "the one that came back first, and the new one"
        assert store.admin.subscriptions.redrive_dead_letters("t", "a").effects.change.redriven == 2

    def test_a_named_dead_letter_topic_is_told_by_its_letters(self, store: Store) -> None:
        """Any topic may be one; the store sees letters there, whatever its name."""
        store.create_topic("graves")
        store.admin.settings.set_retention(time_ms=DAY_MS)
        assert store.reports.topic_retention("graves").in_force[:2] == (DAY_MS, None)
        store.create_producer("t").send(b"poison")
        options = {"max_redeliver_count": 0, "dead_letter_topic": "graves"}
        with store.subscribe("t", "a", initial_position=EARLIEST, **options) as consumer:  # type: ignore[arg-type]
            consumer.negative_acknowledge(consumer.receive(timeout=1), delay=0)
            assert list(consumer.receive_batch(9, timeout=0)) == []
        assert store.reports.topic_retention("graves").in_force[:2] == (None, None)
