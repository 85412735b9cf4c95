"""Attached consumers: `storage/subscription/attached_consumers.py` (semantics sections 4 and 5)."""

from __future__ import annotations

from functools import partial

import pytest

from storage import IsolationLevel, Store, SubscriptionType
from storage.disk.codec import key1, pack, unpack
from storage.disk.schema import CONSUMERS
from storage.disk.view import WriteBatch
from storage.errors import ConsumerEvicted, SubscriptionBusy
from storage.limits import CONSUMERS_LOOKED_AT
from storage.process.clock import ManualClock
from storage.subscription import attached_consumers, catalogue as subscriptions
from storage.subscription.open_subscription import OpenSubscription
from storage.topic import catalogue as topics
from tests.row_json import row_json
from tests.storage.lmdb_operations import counted
from tests.storage.subscription.attaching import attach, send, values
from tests.storage.subscription.crowd import join, looks, work

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

    @pytest.mark.parametrize("type_", TYPES)
    def test_a_consumer_whose_lease_nobody_recorded_is_dead(
        self, store: Store, type_: SubscriptionType
    ) -> None:
        """The next consumer gets what the dead one held, and receives and acknowledges on."""
        send(store, "0", "1", "2")
        lost = attach(store, type_)
        held = lost.receive_batch(2, timeout=0)

        def name_no_process(batch: WriteBatch) -> None:
            ((key, payload),) = [
                (bytes(key), unpack(record)) for key, record in batch.scan(CONSUMERS, key1(1))
            ]
            batch.put(CONSUMERS, key, pack([payload[0], 99, *payload[2:]]))

        store.connection.write(name_no_process)
        consumer = attach(store, type_)
        assert row_json(store.reports.subscription_stats("t", "a"))["unackedMessages"] == 0
        received = consumer.receive_batch(9, timeout=0)
        assert [message.value for message in received] == [b"0", b"1", b"2"]
        assert [message.redelivery_count for message in received] == [1] * len(held) + [0]
        for message in received:
            consumer.acknowledge(message)
        with pytest.raises(ConsumerEvicted):
            lost.acknowledge(held[0])
        send(store, "3")
        assert values(consumer) == [b"3"]

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


class TestNumber:
    """The cursor counts the attached consumers."""

    def test_a_cursor_without_the_count_is_recounted(self, store: Store) -> None:
        """An earlier release wrote it; the next consumer that comes or goes counts on from there."""
        consumers = [attach(store, SHARED) for _ in range(3)]

        def number(batch: WriteBatch, *, is_forgotten: bool = False) -> int:
            opened = OpenSubscription(batch, subscriptions.get(batch, topics.get(batch, "t"), "a"))
            if is_forgotten:
                opened.cursor.consumers = None
            return attached_consumers.number(opened)

        assert store.connection.write(number) == 3
        assert store.connection.write(partial(number, is_forgotten=True)) == 3
        consumers.pop().close()
        assert store.connection.write(number) == 2
        for consumer in consumers:
            consumer.close()
        assert store.connection.write(number) == 0


def names_of(store: Store) -> set[str]:
    rows = row_json(store.reports.subscription_stats("t", "a"))["consumers"]
    return {row["consumerName"] for row in rows}


class TestLooks:
    """How many consumers are looked at for dead ones, and when."""

    @pytest.mark.parametrize("type_", [FAILOVER, SHARED, KEY_SHARED])
    def test_a_dispatch_costs_no_more_with_a_thousand_consumers(
        self, store: Store, type_: SubscriptionType
    ) -> None:
        """Neither look-ups of processes nor operations on records."""
        costs, consumer = {}, attach(store, type_)
        for number in (10, 1000):
            join(store, number - len(costs) * 10 - 1)
            work(store, consumer)
            with looks(store) as looked, counted(store) as operations:
                for _ in range(10):
                    work(store, consumer)
            costs[number] = looked.number, operations.total
        assert costs[1000] <= costs[10]
        assert costs[10][0] <= 10 * CONSUMERS_LOOKED_AT

    @pytest.mark.parametrize("type_", [FAILOVER, SHARED, KEY_SHARED])
    def test_an_attach_looks_at_all_outside_the_gate(
        self, store: Store, path: str, clock: ManualClock, type_: SubscriptionType
    ) -> None:
        """Under the gate an attach beside 1,000 living consumers costs no more than beside 10, and detaches a dead one."""
        costs, attached = dict[int, int](), 1
        attach(store, type_)
        for number in (10, 1000):
            join(store, number - attached)
            attached = number
            with looks(store) as looked, counted(store) as operations:
                attach(store, type_).close()
            costs[number] = operations.total
            assert looked.number <= number + 4
        assert costs[1000] <= costs[10]
        with Store.open(path, clock=clock) as other:
            attach(other, type_, name="dead")
        assert "dead" in names_of(store)
        attach(store, type_)
        assert len(names_of(store)) == 1000 + 1
        assert "dead" not in names_of(store)

    def test_a_busy_consumer_looks_at_all_twice_a_second(
        self, store: Store, path: str, clock: ManualClock
    ) -> None:
        """The messages of a dead consumer far behind the others reach one that never comes up empty."""
        attach(store, SHARED)
        join(store, 100)
        with Store.open(path, clock=clock) as other:
            dead = attach(other, SHARED)
            send(other, "of the dead")
            assert values(dead) == [b"of the dead"]
            consumer = attach(store, SHARED)
        found: list[bytes | None] = []
        for _ in range(4):
            send(store, "new")
            found.append(consumer.receive(timeout=0).value)
            clock.advance(0.25)
        assert b"of the dead" in found

    def test_waiting_consumers_share_one_look_at_all(self, store: Store, clock: ManualClock) -> None:
        """In half a second all are looked at once, by whichever consumer comes first."""
        consumers = [attach(store, SHARED) for _ in range(10)]
        join(store, 100)
        for consumer in consumers:
            assert values(consumer) == []
        clock.advance(1)
        with looks(store) as looked:
            for consumer in consumers:
                assert values(consumer) == []
        assert looked.number == 1 + 100

    def test_a_failover_consumer_looks_up_to_the_first_living_one(self, store: Store) -> None:
        """Those behind it cannot receive."""
        first = attach(store, FAILOVER, name="first")
        join(store, 100)
        send(store, "0")
        with looks(store) as looked:
            assert values(first) == [b"0"]
        assert looked.number <= 4
