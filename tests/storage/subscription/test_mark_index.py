"""The index of subscriptions by markDeletePosition: `storage/subscription/mark_index.py`, `behind.py`."""

from __future__ import annotations

import random

import pytest

from storage import EARLIEST, Store
from storage.disk.schema import MARK_BOUNDS, MARKS
from storage.disk.view import ReadView, WriteBatch
from storage.errors import TopicFull
from storage.process.clock import ManualClock
from storage.subscription import behind, mark_index
from storage.subscription.mark_index import Bound
from storage.topic import catalogue as topics
from storage.values.position import MessageId, Position
from tests.storage.lmdb_operations import counted
from tests.storage.subscription.test_trimming import acknowledge, send

TOPIC = "orders"


@pytest.fixture
def topic(store: Store) -> str:
    store.create_topic(TOPIC, ledger_entries_max=5)
    return TOPIC


def subscribe(store: Store, number: int) -> list[str]:
    """Subscriptions at the begin of the log."""
    names = [f"s{index:04}" for index in range(number)]
    for name in names:
        store.admin.subscriptions.create_subscription(TOPIC, name, initial_position=EARLIEST)
    return names


def id_of(view: ReadView) -> int:
    return topics.get(view, TOPIC).topic_id


def bounds(view: ReadView) -> list[Bound]:
    found, bound = [], mark_index.first(view, id_of(view))
    while bound is not None:
        found.append(bound)
        bound = mark_index.first(view, id_of(view), bound)
    return found


def names_behind(view: ReadView, through: Position) -> list[str]:
    return sorted(each.name for each in behind.subscriptions_behind(view, id_of(view), through))


def test_a_subscription_is_in_the_index_from_its_begin_to_its_deletion(store: Store, topic: str) -> None:
    send(store, topic, 3)
    subscribe(store, 2)
    with store.connection.view() as view:
        assert [(bound.name, bound.at) for bound in bounds(view)] == [
            ("s0000", Position(1, -1)),
            ("s0001", Position(1, -1)),
        ]
        assert mark_index.is_complete(view)
    store.admin.subscriptions.delete_subscription(topic, "s0000")
    store.admin.topics.delete_topic(topic, force=True)
    with store.connection.view() as view:
        assert (view.count(MARKS), view.count(MARK_BOUNDS)) == (0, 0)


def test_the_bound_stays_behind_and_is_raised_when_it_is_asked_for(store: Store, topic: str) -> None:
    send(store, topic, 8)
    subscribe(store, 3)
    acknowledge(store, topic, "s0001", 7)

    def ask(batch: WriteBatch) -> list[str]:
        assert {bound.at for bound in bounds(batch)} == {Position(1, -1)}
        assert names_behind(batch, Position(2, 0)) == ["s0000", "s0002"]
        return [str(bound.at) for bound in bounds(batch)]

    assert store.connection.write(ask) == ["1:-1", "1:-1", "2:1"]


def test_a_mark_that_moves_back_lowers_its_bound_at_once(store: Store, topic: str) -> None:
    send(store, topic, 8)
    subscribe(store, 1)
    acknowledge(store, topic, "s0000", 8)
    store.connection.write(lambda batch: names_behind(batch, Position(10, 0)))
    store.admin.subscriptions.seek_subscription(topic, "s0000", EARLIEST)
    with store.connection.view() as view:
        assert [bound.at for bound in bounds(view)] == [Position(1, -1)]
    assert store.connection.write(lambda batch: names_behind(batch, Position(1, 1))) == ["s0000"]


def test_without_a_bound_for_each_subscription_all_are_looked_at(store: Store, topic: str) -> None:
    """As in a store of format 1, whose index is empty."""
    send(store, topic, 8)
    subscribe(store, 2)
    acknowledge(store, topic, "s0000", 8)

    def ask(batch: WriteBatch) -> tuple[list[str], Bound | None]:
        (gone,) = (bound for bound in bounds(batch) if bound.name == "s0001")
        mark_index.remove(batch, id_of(batch), gone.subscription_id)
        found = names_behind(batch, Position(2, 0)), behind.furthest_back(batch, id_of(batch))
        mark_index.put(batch, id_of(batch), gone)
        assert found[1] == gone
        return found

    assert store.connection.write(ask)[0] == ["s0001"]


def test_the_furthest_back_is_that_of_all(store: Store, topic: str) -> None:
    """Acknowledging, seeking, creating and deleting by chance: the index and a look at every subscription agree."""
    chance = random.Random(7)
    send(store, topic, 40)
    names = subscribe(store, 12)
    for _ in range(60):
        name = chance.choice(names)
        if chance.random() < 0.2:
            store.admin.subscriptions.seek_subscription(
                topic, name, chance.choice([EARLIEST, MessageId(3, 2)])
            )
        else:
            with store.subscribe(topic, name) as consumer:
                consumer.acknowledge(consumer.receive_batch(chance.randint(1, 9), timeout=0))

        def look(view: ReadView) -> tuple[Bound | None, list[str]]:
            return behind.furthest_back(view, id_of(view)), names_behind(view, Position(4, 0))

        with store.connection.view() as view:
            expected = look(view)
        assert store.connection.write(look) == expected
    assert store.maintenance.verify_store(full=True) == []


def test_verify_reports_a_bound_ahead_of_its_mark(store: Store, topic: str) -> None:
    send(store, topic, 3)
    subscribe(store, 1)

    def shift(batch: WriteBatch, at: Position) -> None:
        (bound,) = bounds(batch)
        mark_index.put(batch, id_of(batch), bound._replace(at=at))

    store.connection.write(lambda batch: shift(batch, Position(1, 2)))
    assert [problem.invariant for problem in store.maintenance.verify_store()] == [19]
    store.connection.write(lambda batch: shift(batch, Position(1, -1)))
    assert store.maintenance.verify_store() == []


def operations_of_a_send(store: Store, number: int) -> int:
    """The operations of LMDB in a send to a topic that refuses messages when it is full."""
    store.create_topic(TOPIC)
    store.admin.topics.set_retention(TOPIC, size=1 << 30, hard="refuse")
    send(store, TOPIC, 1)
    subscribe(store, number)
    with store.create_producer(TOPIC) as producer:
        producer.send(b"x")
        with counted(store) as operations:
            producer.send(b"x")
    return operations.total


def test_a_limit_that_refuses_does_not_look_at_every_subscription(
    store: Store, clock: ManualClock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = str(tmp_path_factory.mktemp("other") / "store")
    Store.create(path, clock=clock)
    with Store.open(path, clock=clock) as other:
        assert operations_of_a_send(other, 200) == operations_of_a_send(store, 2)


def test_a_full_topic_names_the_slowest_of_many(store: Store, topic: str) -> None:
    subscribe(store, 20)
    send(store, topic, 30)
    for index in range(19):
        acknowledge(store, topic, f"s{index:04}", 30)
    store.admin.topics.set_retention(topic, size=10, hard="refuse")
    with pytest.raises(TopicFull, match="subscription s0019"):
        send(store, topic, 1)


def test_trimming_raises_bounds_in_steps_of_bounded_size(
    store: Store, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ten bounds a step, thirty subscriptions take several steps, and all ledgers go."""
    monkeypatch.setattr("storage.subscription.trimming.MARKS_RAISED_MAX", 10)
    send(store, topic, 20)
    for name in subscribe(store, 30):
        acknowledge(store, topic, name, 20)
    store.admin.topics.set_retention(topic, time_ms=0)
    store.admin.topics.trim_topic(topic)
    assert store.reports.topic_stats(topic).counts.msg_count == 0
    with store.connection.view() as view:
        assert {bound.at for bound in bounds(view)} == {Position(4, 4)}
