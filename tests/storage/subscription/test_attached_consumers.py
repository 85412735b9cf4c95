"""Attached consumers: `storage/subscription/attached_consumers.py` (semantics sections 4 and 5)."""

from __future__ import annotations

import pytest

from storage import IsolationLevel, Store, SubscriptionType
from storage.errors import SubscriptionBusy
from storage.process.clock import ManualClock
from storage.subscription import attached_consumers
from tests.row_json import row_json
from tests.storage.subscription.attaching import attach, send, values

RC, RU = IsolationLevel
EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED = SubscriptionType
TYPES = list(SubscriptionType)


class TestMode:
    """Type and level are fixed while consumers are attached."""

    @pytest.mark.parametrize("type_", [FAILOVER, SHARED, KEY_SHARED])
    def test_a_consumer_that_asks_for_another_level_is_refused(
        self, store: Store, type_: SubscriptionType
    ) -> None:
        """The error names both levels and who is attached."""
        attach(store, type_, RU, name="fraud")
        with pytest.raises(SubscriptionBusy) as caught:
            attach(store, level=RC)
        for word in ("READ_UNCOMMITTED", "READ_COMMITTED", "fraud"):
            assert word in caught.value.message
        assert caught.value.details["attached"] == ["fraud"]
        attach(store, level=RU)
        attach(store)

    @pytest.mark.parametrize("type_", TYPES)
    @pytest.mark.parametrize("other", TYPES)
    def test_a_consumer_that_asks_for_another_type_is_refused(
        self, store: Store, type_: SubscriptionType, other: SubscriptionType
    ) -> None:
        """The same type joins, but for Exclusive, where one is enough."""
        attach(store, type_, name="first")
        if other is type_ is not EXCLUSIVE:
            attach(store, other)
            return
        with pytest.raises(SubscriptionBusy) as caught:
            attach(store, other)
        assert "first" in caught.value.message
        assert row_json(store.reports.subscription_stats("t", "a"))["type"] == type_.value

    def test_exclusive_admits_one(self, store: Store) -> None:
        """Also one that names nothing; when the first has gone the next may come."""
        first = attach(store)
        with pytest.raises(SubscriptionBusy):
            attach(store)
        first.close()
        attach(store).close()

    def test_a_dead_consumer_does_not_count(self, store: Store, path: str, clock: ManualClock) -> None:
        """Whoever attaches next finds it dead, and may change the mode."""
        with Store.open(path, clock=clock) as other:
            attach(other, EXCLUSIVE, RU, name="dead")
        assert attach(store, SHARED, RC).subscription_type is SHARED

    def test_with_nobody_attached_both_may_change(self, store: Store) -> None:
        """The cursor stays where it is."""
        send(store, "0", "1")
        with attach(store, EXCLUSIVE, RC) as consumer:
            consumer.acknowledge(consumer.receive(timeout=1))
        with attach(store, SHARED, RU) as consumer:
            assert values(consumer) == [b"1"]

    def test_consumers_are_listed_by_name(self, store: Store) -> None:
        """Given names are kept, others are made up and differ."""
        attach(store, SHARED, name="mine")
        attach(store)
        attach(store)
        names = [
            each["consumerName"] for each in row_json(store.reports.subscription_stats("t", "a"))["consumers"]
        ]
        assert names[0] == "mine"
        assert len(set(names)) == 3


class TestActive:
    """A Failover subscription delivers to the living consumer that was attached first."""

    def test_the_first_attached_receives_and_its_successor_after_it(self, store: Store) -> None:
        """A consumer that closes hands over to the next in the order of attachment."""
        send(store, "0", "1")
        first, second, third = [attach(store, FAILOVER) for _ in range(3)]
        assert (values(third), values(second), values(first)) == ([], [], [b"0", b"1"])
        first.close()
        assert (values(third), values(second)) == ([], [b"0", b"1"])

    def test_a_dead_consumer_is_passed_over(self, store: Store, path: str, clock: ManualClock) -> None:
        """The lease of the process decides, before the record of the dead consumer is removed."""
        with Store.open(path, clock=clock) as other:
            attach(other, FAILOVER, name="dead")
            attach(store, FAILOVER, name="successor")
        subscription_id = 1
        with store.connection.view() as view:
            living = attached_consumers.living(view, store.connection.environment.locks, subscription_id)
            recorded = attached_consumers.every(view, subscription_id)
        active = attached_consumers.active(living)
        assert [consumer.name for consumer in recorded] == ["dead", "successor"]
        assert active is not None and active.name == "successor"

    def test_without_consumers_none_is_active(self) -> None:
        """After the last one has gone."""
        assert attached_consumers.active([]) is None
