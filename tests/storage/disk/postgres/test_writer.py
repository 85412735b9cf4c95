"""A batch is stored on the commit just before its own, with the gate and without."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from storage import Store
from storage.disk.postgres.environment import PostgresEnvironment
from storage.disk.postgres.session import Session, Step
from storage.disk.schema import STORE
from storage.disk.view import WriteBatch
from storage.errors import AlreadyExists, Conflict, CorruptStore, ServerLost, TopicNotFound, TxnctlError
from storage.process.clock import SYSTEM_CLOCK
from storage.subscription import span
from tests.postgres_cluster import Cluster
from tests.waiting import let_pass

KEY = b"of the test"


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


def send(store: Store) -> Callable[[], object]:
    producer = store.create_producer("t")
    return lambda: producer.send(b"x")


def send_with_sequence_id(store: Store) -> Callable[[], object]:
    producer, numbers = store.create_producer("t", producer_name="one"), itertools.count(1)
    return lambda: producer.send(b"x", sequence_id=next(numbers))


def send_in_turns(store: Store) -> Callable[[], object]:
    producers = itertools.cycle([store.create_producer("t"), store.create_producer("t")])
    return lambda: next(producers).send(b"x")


def receive_and_acknowledge(store: Store) -> Callable[[], object]:
    producer = store.create_producer("t")
    consumer = store.subscribe("t", "s", subscription_type="Shared")

    def run() -> None:
        producer.send(b"x")
        consumer.acknowledge(consumer.receive(timeout=10))

    return run


def begin_and_commit(store: Store) -> Callable[[], object]:
    """Two transactions are open at any time."""
    producer = store.create_producer("t")
    begun = [store.begin_transaction()]

    def run() -> None:
        begun.append(store.begin_transaction())
        producer.send(b"x", txn=begun[-1])
        store.commit_transaction(begun.pop(0))

    return run


@pytest.mark.parametrize(
    ("prepare", "times"),
    [
        (send, 300),
        (send_with_sequence_id, 300),
        (send_in_turns, 300),
        # Deliveries are kept by span of that many entries; what is walked over is of the present span.
        # Deliveries are kept by span of that many entries; what is walked over is of the present span.
        (receive_and_acknowledge, span.SPAN_ENTRIES),
        (begin_and_commit, 300),
    ],
)
def test_rows_that_a_snapshot_keeps_are_not_walked_over(
    url: str,
    bystander: subprocess.Popen[str],
    postgres_cluster: Cluster,
    prepare: Callable[[Store], Callable[[], object]],
    times: int,
) -> None:
    """An operation under the snapshot of a bystander reads about as few entries of indexes as the ones before."""
    assert bystander.poll() is None
    schema = url.rpartition("=")[2]
    read = f"SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = '{schema}'"
    counts = [0]
    for part in range(2):
        # A session that ends reports all that it has counted.
        with Store.open(url) as store:
            if not part:
                store.create_topic("t")
            run = prepare(store)
            for _ in range(times):
                run()
        counts.append(_settled(postgres_cluster, read))
        # As the server does by itself in a minute: figures of many rows of which few count lead to other plans.
        postgres_cluster.psql(
            f"SET search_path = {schema}; ANALYZE heads; ANALYZE kv; ANALYZE commits; ANALYZE marks"
        )
    first, last = (after - before for before, after in itertools.pairwise(counts))
    # A walk over all of a database would be, for each operation, an entry more for each operation before.
    assert last < first + times * times / 3


def _settled(cluster: Cluster, query: str) -> int:
    """A figure of the server, once it stands still."""
    seen = ""
    until = time.monotonic() + 10
    while (now := cluster.psql(query)) != seen:
        assert time.monotonic() < until, now
        seen = now
        let_pass(0.6, "a session of the server reports its figures twice a second")
    return int(now)


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


@pytest.fixture
def other(url: str, environment: PostgresEnvironment) -> Iterator[PostgresEnvironment]:
    """The store as a further process has it open; the record of the test is gone at the end."""
    other = PostgresEnvironment(url, SYSTEM_CLOCK, read_only=False)
    try:
        yield other
        other.writer.write(_remove)
    finally:
        other.close()


def _put(batch: WriteBatch) -> None:
    batch.put(STORE, KEY, b"1")


def _remove(batch: WriteBatch) -> None:
    batch.delete(STORE, KEY)


def _found(batch: WriteBatch) -> bytes:
    return bytes(batch.get(STORE, KEY) or b"")


def _alone(environment: PostgresEnvironment) -> None:
    """Let the process be the one that made the last two commits, and know that there is no record."""
    for _ in range(2):
        environment.writer.write(_remove)


@pytest.mark.parametrize("refusal", [TopicNotFound("t"), CorruptStore("t"), AssertionError()])
def test_a_refusal_is_one_of_the_last_commit(
    environment: PostgresEnvironment, other: PostgresEnvironment, refusal: Exception
) -> None:
    """A batch made without the gate on an older commit refuses nothing: the change runs again inside the gate."""

    def change(batch: WriteBatch) -> None:
        if batch.get(STORE, KEY) is None:
            raise refusal
        _remove(batch)

    _alone(environment)
    other.writer.write(_put)
    environment.writer.write(change)
    with environment.view() as view:
        assert view.get(STORE, KEY) is None


def test_a_durable_refusal_is_one_of_the_last_commit(
    environment: PostgresEnvironment, other: PostgresEnvironment
) -> None:
    """A refusal that leaves nothing to store is not told apart from a result."""

    def change(batch: WriteBatch) -> None:
        if batch.get(STORE, KEY) is None:
            raise batch.refuse(TxnctlError("refused"))

    _alone(environment)
    other.writer.write(_put)
    environment.writer.write(change)


def test_a_refusal_that_is_stored_runs_once(environment: PostgresEnvironment) -> None:
    """Its own commit is none that overtakes it."""
    runs: list[WriteBatch] = []

    def change(batch: WriteBatch) -> None:
        runs.append(batch)
        _put(batch)
        raise batch.refuse(TxnctlError("refused"))

    _alone(environment)
    before = environment.last_commit()
    with pytest.raises(TxnctlError, match="refused"):
        environment.writer.write(change)
    environment.writer.write(_remove)
    assert (len(runs), environment.last_commit()) == (1, before + 2)


def test_holders_in_the_way_are_those_of_the_last_commit(
    environment: PostgresEnvironment, other: PostgresEnvironment
) -> None:
    """A holder that an older commit shows as due is looked at again inside the gate."""
    ended: list[int] = []
    ends = SimpleNamespace(
        find_due=lambda batch, holders: [] if _found(batch) else holders,
        end=lambda batch, due: ended.extend(due),
    )

    def change(batch: WriteBatch) -> None:
        raise Conflict("held", held_by=[7])

    _alone(environment)
    environment.writer.holder_ends, kept = ends, environment.writer.holder_ends
    other.writer.write(_put)
    with pytest.raises(Conflict):
        environment.writer.write(change)
    environment.writer.holder_ends = kept
    assert ended == []


def test_a_result_without_changes_is_one_of_the_last_commit(
    environment: PostgresEnvironment, other: PostgresEnvironment
) -> None:
    """Without the gate, an answer that stores nothing might be that of an older commit."""
    _alone(environment)
    other.writer.write(_put)
    assert environment.writer.write(_found) == b"1"


def test_a_rehearsed_result_is_one_of_the_last_commit(
    environment: PostgresEnvironment, other: PostgresEnvironment
) -> None:
    """A dry run inside the gate stores nothing, so that no commit proves its answer."""

    def change(batch: WriteBatch) -> bytes:
        found = _found(batch)
        _remove(batch)
        return found

    _alone(environment)
    other.writer.write(_put)
    assert environment.writer.write(change, dry_run=True) == b"1"


def test_a_change_of_the_read_cache_is_sent_once(
    environment: PostgresEnvironment, steps: list[list[str]]
) -> None:
    """A new generation empties the tables of the cache, which no further batch repeats."""
    for _ in range(3):
        environment.writer.write(lambda batch: batch.read_cache.start_anew(batch.superblock))
    assert "begin_reads" in steps[-1]
    steps.clear()
    environment.writer.write(_put)
    environment.writer.write(_remove)
    assert [step for trip in steps for step in trip if "reads" in step] == []


def test_a_lost_server_is_not_asked_again(
    environment: PostgresEnvironment, other: PostgresEnvironment, postgres_cluster: Cluster
) -> None:
    """A batch that meets the loss while it reads without the gate reports the loss."""

    def change(batch: WriteBatch) -> None:
        postgres_cluster.psql(f"SELECT pg_terminate_backend({environment._batches.server_pid})")
        batch.get(STORE, KEY + b"?")
        pytest.fail("the session went on")

    _alone(environment)
    with pytest.raises(ServerLost):
        environment.writer.write(change)
