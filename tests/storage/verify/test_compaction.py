"""Damage to a compacted view is found: `storage/verify/compaction.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import Store
from storage.disk.codec import key2
from storage.disk.schema import COMPACTED, COMPACTED_KEYS, COMPACTIONS, TOMBSTONES
from storage.disk.view import WriteBatch
from storage.topic import catalogue as topics
from storage.topic.compaction import compacted_view, compaction_state
from storage.topic.compaction.compacted_entry import KEY, key_digest
from storage.txn.reaper import EVERY
from storage.values.position import Position


@pytest.fixture
def compacted(store: Store) -> Store:
    """A topic whose view has `a` at 1:1, a tombstone of `b` at 1:3 and a plain message at 1:2, and a tail."""
    store.create_topic("t")
    with store.create_producer("t") as producer:
        for key, value in (("a", b"1"), ("a", b"2"), (None, b"plain"), ("b", None)):
            producer.send(value, key=key)
        store.admin.topics.compact_topic("t")
        producer.send(b"3", key="a")
    assert store.maintenance.verify_store(full=True) == []
    return store


def change(store: Store, action: Callable[[WriteBatch, int], object]) -> None:
    """Change records of the topic behind the engine's back."""
    store.connection.write(lambda batch: action(batch, topics.get(batch, "t").topic_id), naming=EVERY)


def found(store: Store) -> set[int | None]:
    """The invariants that verify finds broken."""
    return {problem.invariant for problem in store.maintenance.verify_store(full=True)}


def record(topic_id: int, entry: int) -> bytes:
    return KEY.pack(topic_id, 1, 1, entry, 0)


def test_a_message_that_is_missing_is_found(compacted: Store) -> None:
    """With a key, whose newest message the log has, and without."""
    for entry in (1, 2):
        change(
            compacted, lambda batch, topic_id, entry=entry: batch.delete(COMPACTED, record(topic_id, entry))
        )  # type: ignore[misc]
        assert {22, 23} <= found(compacted)


def test_an_older_message_of_a_key_is_found(compacted: Store) -> None:
    """The view and its index agree, and the log has a newer one."""

    def go_back(batch: WriteBatch, topic_id: int) -> None:
        state = compaction_state.load(batch, topic_id)
        assert state is not None
        payload = bytes(batch.get(COMPACTED, record(topic_id, 1)) or b"")
        batch.delete(COMPACTED, record(topic_id, 1))
        batch.put(COMPACTED, record(topic_id, 0), payload)
        compacted_view.put_place(batch, topic_id, state, key_digest(b"a"), (1, 0, 0))

    change(compacted, go_back)
    assert 22 in found(compacted)


def test_a_message_that_differs_from_its_original_is_found(compacted: Store) -> None:
    """Its bytes are those of the log."""

    def replace(batch: WriteBatch, topic_id: int) -> None:
        payload = bytes(batch.get(COMPACTED, record(topic_id, 2)) or b"")
        batch.put(COMPACTED, record(topic_id, 2), payload.replace(b"plain", b"pIain"))

    change(compacted, replace)
    assert found(compacted) == {5}


def test_a_second_message_of_a_key_and_one_beyond_the_end_are_found(compacted: Store) -> None:
    """Also where index and log say nothing of it."""

    def copy(batch: WriteBatch, topic_id: int) -> None:
        payload = bytes(batch.get(COMPACTED, record(topic_id, 1)) or b"")
        batch.put(COMPACTED, record(topic_id, 9), payload)

    change(compacted, copy)
    assert found(compacted) == {2, 22, 23}


def test_counters_queue_and_horizon_are_compared(compacted: Store) -> None:
    """A lost tombstone of the queue, a wrong count, an end beyond maxReadPosition, an index of nothing."""

    def lose(batch: WriteBatch, topic_id: int) -> None:
        batch.delete_prefix(TOMBSTONES, key2(topic_id, 1))

    def miscount(batch: WriteBatch, topic_id: int) -> None:
        state = compaction_state.load(batch, topic_id)
        assert state is not None
        state.bytes += 1

    def overreach(batch: WriteBatch, topic_id: int) -> None:
        state = compaction_state.load(batch, topic_id)
        assert state is not None
        state.horizon = Position(7, 7)

    def invent(batch: WriteBatch, topic_id: int) -> None:
        batch.put(COMPACTED_KEYS, key2(topic_id, 1) + b"x" * 20, b"\0" * 20)

    for action, invariant in ((lose, 23), (miscount, 23), (invent, 23), (overreach, 2)):
        change(compacted, action)
        assert invariant in found(compacted), action.__name__


def test_a_view_without_its_record_is_found(compacted: Store) -> None:
    """Its messages belong to no generation that was begun."""
    change(compacted, lambda batch, topic_id: batch.delete(COMPACTIONS, topic_id.to_bytes(8, "big")))
    assert 6 in found(compacted)
