"""A batch is stored on the commit just before its own, with the gate and without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.session import Session, Step
from storage.disk.schema import HEADS
from storage.disk.view import DurableRefusal, ReadView, WriteBatch
from storage.errors import AlreadyExists, TopicNotFound
from storage.topic.catalogue import key1

_SEND_BOTH = """
import sys
from storage import Store
with Store.open(sys.argv[1]) as store, store.transaction() as txn:
    for topic in ("t", "u"):
        store.create_producer(topic).send(b"", txn=txn)
"""


@pytest.fixture
def steps(environment: PostgresEnvironment, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The statements of each round trip of batches, from now on."""
    trips: list[list[str]] = []
    run = Session.run_steps

    def noted(self: Session, steps: Sequence[Step], **options: Any) -> Any:
        if self is environment._batches:
            trips.append([statement[0].decode() for statement, _ in steps])
        return run(self, steps, **options)

    monkeypatch.setattr(Session, "run_steps", noted)
    return trips


def test_a_process_alone_sends_a_message_in_one_round_trip(store: Store, steps: list[list[str]]) -> None:
    """From the third commit on; the counts of events go along now and then."""
    store.create_topic("t")
    producer = store.create_producer("t")
    producer.send(b"first")
    steps.clear()
    producer.send(b"second")
    assert [[step for step in trip if step != "count_events"] for trip in steps] == [["apply"]]


def test_a_batch_behind_another_commit_is_made_again_inside_the_gate(
    store: Store, steps: list[list[str]]
) -> None:
    """The writer takes an older commit for the last one, as behind a commit of another process."""
    store.create_topic("t")
    producer = store.create_producer("t")
    producer.send(b"0")
    environment = store.connection.environment
    assert isinstance(environment, PostgresEnvironment)
    environment.writer.kept.commit = (environment.writer, environment.writer.kept.commit[1] - 1)
    steps.clear()
    producer.send(b"1")
    trips = [trip for trip in steps if not trip[0].startswith(("next", "get", "back", "count"))]
    assert [trip[0] for trip in trips] == ["apply", "begin", "apply"]
    with store.reader("t") as reader:
        assert [message.value for message in reader] == [b"0", b"1"]


def heads(view: ReadView | WriteBatch) -> Iterator[bytes | None]:
    """The records of the first two topics, one after the other."""
    for topic_id in (1, 2):
        record = view.get(HEADS, key1(topic_id))
        yield None if record is None else bytes(record)


@pytest.mark.parametrize("raises", [False, True])
def test_what_a_batch_before_the_gate_has_read_is_proven(store: Store, raises: bool) -> None:
    """A result without a change, or an error, is that of one commit, also where another one came between two reads."""
    for topic in ("t", "u"):
        store.create_topic(topic)
    producer = store.create_producer("t")
    producer.send(b"0")
    producer.send(b"1")
    runs: list[list[bytes | None]] = []

    def change(batch: WriteBatch) -> list[bytes | None]:
        read = heads(batch)
        found = [next(read)]
        if not runs:
            subprocess.run([sys.executable, "-c", _SEND_BOTH, store.path], check=True)
        runs.append([*found, *read])
        if raises:
            raise ValueError(runs[-1])
        return runs[-1]

    try:
        result = store.connection.write(change)
    except ValueError as error:
        result = error.args[0]
    with store.connection.view() as view:
        committed = [*heads(view)]
    assert (len(runs), result) == (2, committed)


def test_a_stored_refusal_runs_once(store: Store) -> None:
    """A change that is refused for good, before the gate: its commit is none of another process."""
    store.create_topic("t")
    producer = store.create_producer("t")
    producer.send(b"0")
    producer.send(b"1")
    before, runs = store.connection.environment.last_commit(), []

    def change(batch: WriteBatch) -> None:
        runs.append(batch)
        batch.superblock.changes += 1
        raise DurableRefusal(TopicNotFound("gone"))

    with pytest.raises(TopicNotFound):
        store.connection.write(change)
    assert (len(runs), store.connection.environment.last_commit()) == (1, before + 1)


def test_a_refused_change_stores_nothing(store: Store) -> None:
    """The commit number stays, and the next batch goes on."""
    store.create_topic("t")
    before = store.connection.environment.last_commit()
    with pytest.raises(AlreadyExists):
        store.create_topic("t")
    with pytest.raises(TopicNotFound):
        store.create_producer("none")
    assert store.connection.environment.last_commit() == before
    store.create_topic("u")
    assert store.connection.environment.last_commit() == before + 1


def test_a_dry_run_takes_no_gate_and_stores_nothing(store: Store, steps: list[list[str]]) -> None:
    """It runs on an overlay over a view."""
    store.create_topic("t")
    steps.clear()
    before = store.connection.environment.last_commit()
    store.admin.topics.delete_topic("t", dry_run=True)
    assert store.has_topic("t")
    assert (steps, store.connection.environment.last_commit()) == ([], before)
