"""The blocks of the aborted set: few records for any number of aborted transactions, and equal to their segments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import EARLIEST, Store
from storage.disk.codec import key1
from storage.disk.schema import ABORTED_BLOCKS
from storage.disk.view import WriteBatch
from storage.maintenance import topic_gc
from storage.subscription import trimming
from storage.topic import catalogue as topics, state as topic_states
from storage.topic.open_topic import OpenTopic
from storage.txn import aborted, aborted_blocks
from storage.txn.aborted import AbortedSet
from storage.values.position import Position
from tests.storage.records_read import records_read

LEVELS = 4
"""Levels of blocks here: few segments, each of a few transactions, in blocks of two, make as many."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aborted, "ABORTED_SEGMENT_TRANSACTIONS_MAX", 2)
    monkeypatch.setattr(aborted_blocks, "SEGMENTS", 2)


@pytest.fixture
def topic_id(store: Store) -> int:
    """The topic `t`, with ledgers of few entries."""
    store.admin.topics.delete_topic("t")
    store.create_topic("t", ledger_entries_max=10)
    with store.connection.view() as view:
        return topics.get(view, "t").topic_id


def abort(store: Store, count: int) -> None:
    """Abort transactions with a message each, and send a plain message after them."""
    with store.create_producer("t") as producer:
        for _ in range(count):
            txn = store.begin_transaction(timeout=3600)
            producer.send(b"aborted", txn=txn)
            store.admin.transactions.abort_transaction(txn)
        producer.send(b"last")


def values(store: Store, start: object = EARLIEST) -> list[bytes | None]:
    with store.reader("t", start=start) as reader:  # type: ignore[arg-type]
        return [value for entry in reader.entries() for value in entry.values]


def blocks(store: Store, topic_id: int) -> list[tuple[int, int]]:
    with store.connection.view() as view:
        return [(block.level, block.number) for block in aborted_blocks.every(view, topic_id)]


def covered(store: Store, topic_id: int) -> list[int]:
    """The segments below the open one, as the largest blocks name them."""
    with store.connection.view() as view:
        state = topic_states.load(view, topic_id)
        found = aborted_blocks.sealed_blocks(view, topic_id, state.aborted_segment)
        return [segment for block in found for segment in aborted_blocks.segments_of(block)]


def test_a_reader_at_the_end_reads_as_few_records_beside_many_aborted_transactions(
    store: Store, topic_id: int
) -> None:
    """The records that a new reader of the last message reads grow with the logarithm of the aborted set alone."""
    reads = []
    for more in (16, 112):
        abort(store, more)
        with store.connection.view() as view:
            last = topic_states.load(view, topic_id).last_confirmed
        with Store.open(store.path) as other, records_read() as counted:
            assert values(other, last) == [b"last"]
        reads.append(counted.by_database)
    assert reads[1] == reads[0]
    assert "aborted" not in reads[1]


def test_a_reader_beside_a_transaction_that_spans_the_topic_reads_few_segments(
    store: Store, topic_id: int
) -> None:
    """Where one aborted transaction lies on both sides of the range, its segment is read, and few blocks."""
    producer, spanning = store.create_producer("t"), store.begin_transaction(timeout=3600)
    producer.send(b"aborted", txn=spanning)
    reads = []
    for more in (16, 112):
        abort(store, more)
        with store.connection.view() as view:
            last = topic_states.load(view, topic_id).last_confirmed
        if more == 112:
            producer.send(b"aborted", txn=spanning)
            store.admin.transactions.abort_transaction(spanning)
        with Store.open(store.path) as other, records_read() as counted:
            assert values(other, last) == ([b"last"] if more == 112 else [])
        reads.append(counted.by_database)
    assert reads[1]["aborted"] <= 4
    assert reads[1]["aborted_blocks"] <= 4 * LEVELS


def test_the_counts_of_a_topic_read_as_few_records(store: Store, topic_id: int) -> None:
    """`topics stats` and counts of a backlog go by the sums of blocks."""
    reads = []
    for more in (16, 112):
        abort(store, more)
        with records_read() as counted:
            assert store.reports.topic_stats("t").counts.aborted_txn_count in (16, 128)  # type: ignore[attr-defined]
        reads.append(counted.total)
    assert reads[1] <= reads[0] + LEVELS


def test_blocks_are_written_as_they_are_completed(store: Store, topic_id: int) -> None:
    """Of seven sealed segments there are blocks of one, of two and of four."""
    abort(store, 15)
    assert blocks(store, topic_id) == [
        *((0, number) for number in range(7)), (1, 0), (1, 1), (1, 2), (2, 0), (aborted_blocks.WHOLE, 0),
    ]  # fmt: skip
    assert covered(store, topic_id) == list(range(7))


def test_blocks_go_with_the_segments_that_are_trimmed(store: Store, topic_id: int) -> None:
    """After each trimming the blocks that are left cover the segments that are left, and counts agree."""
    abort(store, 60)
    while True:
        with store.connection.view() as view:
            state = topic_states.load(view, topic_id)
        if state.first_ledger == state.ledger_id:
            break

        def trim_one(batch: WriteBatch) -> None:
            topic = OpenTopic.load(batch, topic_id)
            trimming.drop(topic, topic.state.first_ledger + 1)

        store.connection.write(trim_one)
        numbers = covered(store, topic_id)
        assert numbers == list(range(numbers[0], 30)) if numbers else True
        assert store.maintenance.verify_store(full=True) == []
        assert values(store) == [b"last"]


def test_segments_without_blocks_are_read_themselves_until_gc_writes_the_blocks(
    store: Store, topic_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store of an earlier release has segments without blocks, and goes on with blocks for those that follow."""
    abort(store, 11)

    def forget_blocks(batch: WriteBatch) -> None:
        batch.delete_prefix(ABORTED_BLOCKS, key1(topic_id))

    store.connection.write(forget_blocks)
    assert values(store) == [b"last"]
    abort(store, 30)
    assert values(store) == [b"last", b"last"]
    assert covered(store, topic_id) == list(range(20))
    with store.connection.view() as view:
        assert not aborted_blocks.is_complete(view, topic_id, 20)
    monkeypatch.setattr(topic_gc, "_SEGMENTS_AT_ONCE", 2)
    store.maintenance.collect_garbage()
    with store.connection.view() as view:
        assert aborted_blocks.is_complete(view, topic_id, 20)
        found = aborted_blocks.sealed_blocks(view, topic_id, 20)
        assert [(block.level, block.number) for block in found] == [(4, 0), (2, 4)]
    assert store.reports.topic_stats("t").readable.skipped_messages == 41  # type: ignore[attr-defined]
    assert store.maintenance.verify_store(full=True) == []


@pytest.mark.parametrize(
    "damage", [lambda block: None, lambda block: block._replace(messages=block.messages + 1)]
)
def test_a_block_that_is_wrong_is_found(
    store: Store,
    topic_id: int,
    damage: Callable[[aborted_blocks.AbortedBlock], aborted_blocks.AbortedBlock | None],
) -> None:
    """Verify recounts every block; a missing one costs time only."""
    abort(store, 9)
    with store.connection.view() as view:
        block = next(aborted_blocks.every(view, topic_id))
    wrong = damage(block)

    def replace(batch: WriteBatch) -> None:
        key = key1(topic_id) + key1(0) + key1(0)
        batch.delete(ABORTED_BLOCKS, key)
        if wrong is not None:
            aborted_blocks.put(batch, topic_id, wrong)

    store.connection.write(replace)
    problems = store.maintenance.verify_store(full=True)
    assert [problem.invariant for problem in problems] == ([] if wrong is None else [23])
    assert values(store) == [b"last"]
    store.connection.write(lambda batch: aborted_blocks.put(batch, topic_id, block))


def test_a_reader_that_goes_on_remembers_few_transactions(
    store: Store, topic_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set of a reader does not grow with every transaction that was ever aborted."""
    monkeypatch.setattr(aborted, "SEGMENTS_REMEMBERED", 4)
    known, after = AbortedSet(), Position(0, -1)
    for _ in range(20):
        abort(store, 4)
        with store.connection.view() as view:
            topic = OpenTopic.load(view, topic_id)
            known.load(topic, after, topic.state.last_confirmed)
            after = topic.state.last_confirmed
        assert len(known.ids) <= 14


def test_segments_around_every_page_are_read_once(
    store: Store, topic_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader among more segments than it remembers otherwise keeps those that each page touches."""
    monkeypatch.setattr(aborted, "SEGMENTS_REMEMBERED", 4)
    spanning = [store.begin_transaction() for _ in range(40)]
    with store.create_producer("t") as producer:
        for txn in spanning:
            producer.send(b"before", txn=txn)
        plain = [producer.send(b"x").position for _ in range(8)]
        for txn in spanning:
            producer.send(b"behind", txn=txn)
    for txn in spanning:
        store.admin.transactions.abort_transaction(txn)
    known, reads = AbortedSet(), []
    with store.connection.view() as view:
        topic = OpenTopic.load(view, topic_id)
        for ledger_id, entry in plain:
            with records_read() as counted:
                known.load(topic, Position(ledger_id, entry - 1), Position(ledger_id, entry))
            reads.append(counted.by_database.get("aborted", 0))
            assert known.ids == {txn.least for txn in spanning}
    assert reads[0] > 0
    assert sum(reads[1:]) == 0
