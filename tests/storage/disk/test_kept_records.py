"""Kept records: the next batch reads none of the records that the commit before has encoded, unless they changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from storage import Store
from storage.disk.codec import key1
from storage.disk.kept_records import KeptRecords
from storage.disk.schema import HEADS, STORE
from storage.disk.view import WriteBatch
from storage.topic import state as states
from storage.topic.state import TopicState
from tests.storage.lmdb_operations import counted

_KEY = key1(1)
_SEND = "import sys; from storage import Store; Store.open(sys.argv[1]).create_producer('t').send(b'other')"


@pytest.fixture
def topic(store: Store) -> Store:
    """The store, with the topic `t` of number 1."""
    return store


def state_of(batch: WriteBatch) -> TopicState:
    """The topic's state, shared by the batch."""
    return states.load(batch, 1)


def count_session(batch: WriteBatch) -> int:
    """Change the state of the topic, and the superblock with it."""
    state_of(batch).session_changes += 1
    return state_of(batch).session_changes


def test_second_commit_reads_no_record(topic: Store) -> None:
    """Neither the superblock nor the topic's state."""
    producer = topic.create_producer("t")
    with counted(topic) as operations:
        producer.send(b"first")
        first = operations.reads
        producer.send(b"second")
    assert first >= 2
    assert operations.reads == first


def test_commit_of_another_process_is_seen(tmp_path: Path) -> None:
    """A state that a different process has changed meanwhile is read again."""
    Store.create(tmp_path / "store")
    with Store.open(tmp_path / "store") as store:
        store.create_topic("t")
        with store.create_producer("t") as producer:
            producer.send(b"before")
            subprocess.run([sys.executable, "-c", _SEND, tmp_path / "store"], check=True)
            producer.send(b"after")
        with store.connection.view() as view:
            assert states.load(view, 1).messages == 3
        assert store.maintenance.verify_store(full=True) == []


def test_batch_that_comes_to_nothing_leaves_no_records(topic: Store) -> None:
    """A refused change, a dry run and a batch without a commit may have changed the objects."""

    def refuse(batch: WriteBatch) -> None:
        count_session(batch)
        raise ZeroDivisionError

    def keep_to_itself(batch: WriteBatch) -> None:
        batch.superblock.last_topic += 1

    assert topic.connection.write(count_session) == 1
    with pytest.raises(ZeroDivisionError):
        topic.connection.write(refuse)
    topic.connection.write(count_session, dry_run=True)
    topic.connection.rehearse(count_session)
    topic.connection.write(keep_to_itself)
    assert topic.connection.write(count_session) == 2
    assert topic.connection.write(lambda batch: batch.superblock.last_topic) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch.put(HEADS, _KEY, batch.get(HEADS, _KEY)),
        lambda batch: batch.put_record(HEADS, _KEY, state_of(batch)),
        lambda batch: batch.close_records(HEADS, _KEY),
        lambda batch: batch.delete_prefix(HEADS, key1(7)),
    ],
)
def test_record_that_is_put_is_read_again(topic: Store, change: object) -> None:
    """Put by its key, put as a record, closed, or perhaps removed: the next batch finds the state on the disk."""
    before = topic.connection.write(lambda batch: count_session(batch) and state_of(batch))
    topic.connection.write(change)
    after = topic.connection.write(lambda batch: count_session(batch) and state_of(batch))
    assert after is not before
    assert after.session_changes == 2


def test_removed_record_is_gone(topic: Store) -> None:
    """A deleted topic is found by no later batch."""
    topic.connection.write(count_session)
    topic.admin.topics.delete_topic("t")
    assert topic.connection.write(lambda batch: batch.open(HEADS, _KEY, TopicState.decode)) is None


def test_counts_are_kept_until_the_database_changes(topic: Store) -> None:
    """A count is known to the next batch; after a change of the database, and of another process, it is asked anew."""

    def known(batch: WriteBatch) -> dict[str, int]:
        count_session(batch)
        return {database.name: number for database, number in batch.counts.items()}

    def counted_with(change: Callable[[WriteBatch], object]) -> dict[str, int]:
        topic.connection.write(lambda batch: (batch.count(STORE), change(batch), count_session(batch)))
        return topic.connection.write(known)

    name = b"test"
    assert counted_with(lambda _: None)["store"] == 1
    assert "store" not in counted_with(lambda batch: batch.put(STORE, name, b""))
    assert counted_with(lambda _: None)["store"] == 2
    assert "store" not in counted_with(lambda batch: batch.delete(STORE, name))
    assert "store" not in counted_with(lambda batch: batch.delete_prefix(STORE, name))
    assert counted_with(lambda _: None)["store"] == 1
    subprocess.run([sys.executable, "-c", _SEND, topic.connection.path], check=True)
    assert "store" not in topic.connection.write(known)


def test_few_records_are_kept(store: Store) -> None:
    """A commit of very many topics keeps none of their states."""
    for number in range(2, 71):
        store.create_topic(f"t{number}")

    def count_everywhere(batch: WriteBatch, number: int) -> list[TopicState]:
        opened = [states.load(batch, topic_id) for topic_id in range(1, number + 1)]
        for state in opened:
            state.session_changes += 1
        return opened

    few = store.connection.write(lambda batch: count_everywhere(batch, 64))
    assert store.connection.write(lambda batch: count_everywhere(batch, 64)) == few
    many = store.connection.write(lambda batch: count_everywhere(batch, 70))
    again = store.connection.write(lambda batch: count_everywhere(batch, 70))
    assert not set(map(id, many)) & set(map(id, again))
    assert {state.session_changes for state in again[:64]} == {4}


def test_interrupt_while_records_are_kept_leaves_no_earlier_ones(topic: Store) -> None:
    """At any point of `keep`, behind the commit: the next batch finds what was committed."""
    instructions = 0

    def drop(batch: WriteBatch) -> None:
        state_of(batch).session_changes += 1000

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal instructions
        if frame.f_code is not KeptRecords.keep.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            instructions -= 1
            if not instructions:
                raise KeyboardInterrupt
        return trace

    before, count, is_interrupted = topic.connection.write(count_session), 0, True
    while is_interrupted:
        topic.connection.write(drop, dry_run=True)
        count += 1
        instructions, tracer = count, sys.gettrace()
        sys.settrace(trace)
        try:
            topic.connection.write(count_session)
        except KeyboardInterrupt:
            pass
        else:
            is_interrupted = False
        finally:
            sys.settrace(tracer)
        before += 2
        assert topic.connection.write(count_session) == before
    assert count > 10
