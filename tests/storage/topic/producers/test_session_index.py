"""The index of sessions: a Shared producer does not look at the other Shared ones, and dead ones still go."""

from __future__ import annotations

import pytest

from storage import Store
from storage.disk.codec import key1
from storage.disk.schema import SESSION_INDEX
from storage.disk.view import WriteBatch
from storage.errors import ProducerBusy
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from storage.topic.producers import session as sessions, session_index
from tests.storage.records_read import records_read
from tests.storage.topic.producers.modes import EXCLUSIVE, SHARED, WAITING


def topic_id_of(store: Store) -> int:
    with store.connection.view() as view:
        return topics.get(view, "t").topic_id


def recorded(store: Store) -> list[str]:
    """The names of all sessions with a record, dead ones included."""
    with store.connection.view() as view:
        return [session.name for session in sessions.every(view, topics.get(view, "t").topic_id)]


@pytest.mark.parametrize("named", [False, True])
def test_connecting_and_sending_read_as_few_records_beside_many_producers(store: Store, named: bool) -> None:
    """The hundredth Shared producer of a topic connects, sends and leaves with the reads of the twentieth."""
    reads = []
    for number in range(100):
        with records_read() as counted:
            producer = store.create_producer("t", producer_name=f"p{number}" if named else None)
            producer.send(b"x")
        reads.append(counted.total)
    assert reads[99] <= reads[19]


def test_a_send_without_a_connection_reads_as_few_records_beside_many_producers(store: Store) -> None:
    """`txnctl produce -m` does not look at every connected producer."""
    visitor, reads = store.create_producer("t", producer_name="visitor", connected=False), []
    for _ in range(3):
        for _ in range(30):
            store.create_producer("t")
        with records_read() as counted:
            visitor.send(b"x")
        reads.append(counted.total)
    assert reads[2] <= reads[1]


def test_dead_sessions_go_while_others_connect(store: Store, path: str, clock: ManualClock) -> None:
    """Each admission examines some sessions in turn: dead ones do not pile up, wherever they stand."""
    living = [store.create_producer("t") for _ in range(20)]
    with Store.open(path, clock=clock) as other:
        for _ in range(30):
            other.create_producer("t")
        living += [store.create_producer("t") for _ in range(20)]
    assert len(recorded(store)) == 70
    for _ in range(70 // session_index.EXAMINED_AT_ONCE + 2):
        living.append(store.create_producer("t"))
    assert recorded(store) == [producer.producer_name for producer in living]
    assert store.maintenance.verify_store(full=True) == []


def test_a_name_is_free_again_after_a_death(store: Store, path: str, clock: ManualClock) -> None:
    """A dead session of the name does not refuse the living producer, examined or not."""
    with Store.open(path, clock=clock) as other:
        other.create_producer("t", producer_name="loader")
        with pytest.raises(ProducerBusy, match="loader"):
            store.create_producer("t", producer_name="loader")
        for _ in range(20):
            store.create_producer("t")
    again = store.create_producer("t", producer_name="loader")
    again.send(b"x")
    assert store.maintenance.verify_store(full=True) == []


def test_a_queue_and_an_owner_are_seen(store: Store, path: str, clock: ManualClock) -> None:
    """Where an exclusive producer is connected, a Shared one is refused, and connects after its end."""
    with Store.open(path, clock=clock) as other:
        owner = other.create_producer("t", access_mode=EXCLUSIVE)
        with pytest.raises(ProducerBusy):
            store.create_producer("t", access_mode=SHARED)
        owner.close()
        store.create_producer("t", access_mode=SHARED).close()
        other.create_producer("t", access_mode=WAITING)
        with pytest.raises(ProducerBusy):
            store.create_producer("t", access_mode=SHARED)
    store.create_producer("t", access_mode=SHARED)
    assert store.maintenance.verify_store(full=True) == []


def test_the_sessions_of_an_earlier_release_are_indexed_at_the_next_admission(store: Store) -> None:
    """Without an index every session is looked at, once."""
    first = store.create_producer("t", producer_name="first")

    def forget(batch: WriteBatch) -> None:
        batch.delete_prefix(SESSION_INDEX, key1(topics.get(batch, "t").topic_id))

    store.connection.write(forget)
    with pytest.raises(ProducerBusy, match="first"):
        store.create_producer("t", producer_name="first")
    second = store.create_producer("t", producer_name="second")
    with store.connection.view() as view:
        _, named = session_index.entries(view, topics.get(view, "t").topic_id)
    assert {name for name, _ in named} == {"first", "second"}
    first.close()
    second.close()


def test_verify_compares_the_index_with_the_records(store: Store) -> None:
    """A name too many and a queue that is counted wrong are found (invariants 10 and 11)."""
    topic_id = topic_id_of(store)
    producer = store.create_producer("t", producer_name="p")

    def change(names: list[str], waiting: int) -> list[int]:
        def write(batch: WriteBatch) -> None:
            batch.delete_prefix(SESSION_INDEX, key1(topic_id))
            (session,) = sessions.every(batch, topic_id)
            session_index.make(batch, topic_id, [])
            for name in names:
                session.name = name
                session_index.enter(batch, session)
            session.is_waiting = True
            for _ in range(waiting):
                session_index.enter(batch, session)

        store.connection.write(write)
        return [problem.invariant for problem in store.maintenance.verify_store(full=True)]

    assert (change(["p", "q"], 0), change([], 0), change(["p"], 1), change(["p"], 0)) == (
        [10],
        [10],
        [11],
        [],
    )
    producer.close()
