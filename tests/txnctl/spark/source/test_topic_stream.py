"""A stream of topics: where it begins, how far a batch goes, and that nothing is lost or comes twice."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from storage import Store
from storage.errors import InvalidPosition
from tests.model_runs import examples
from tests.row_json import row_json
from tests.txnctl.spark.micro_batches import Killed, Query
from tests.txnctl.spark.source.topic_stream_steps import reader, send


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=examples(12))
@pytest.mark.parametrize("level", ["READ_COMMITTED", "READ_UNCOMMITTED"])
def test_a_stream_that_is_killed_between_any_two_steps_loses_and_repeats_nothing(
    tmp_path_factory: pytest.TempPathFactory, level: str, seed: int
) -> None:
    """With ledgers that roll over, transactions that end meanwhile, and batches that are bounded."""
    chance = random.Random(seed)
    path = str(tmp_path_factory.mktemp("stream") / "store")
    Store.create(path)
    with Store.open(path) as store:
        for topic in ("t", "u"):
            store.create_topic(topic, ledger_entries_max=3)
        query = Query(path, topics="t,u", subscription="s", isolationLevel=level, maxMessagesPerTrigger="4")
        with pytest.raises(Killed):
            query.run(iter([True, True, False]).__next__)
        number, txns = 0, [store.begin_transaction()]
        for _ in range(6):
            for _ in range(chance.randrange(5)):
                with store.create_producer(chance.choice("tu")) as producer:
                    txn = chance.choice([None, None, *txns])
                    producer.send_batch([b"%d" % (number + more) for more in range(2)], txn=txn)
                number += 2
            if chance.random() < 0.5:
                chance.choice([store.commit_transaction, store.admin.transactions.abort_transaction])(
                    txns.pop()
                )
                txns.append(store.begin_transaction())
            try:
                query.run(lambda: chance.random() < 0.9)
            except Killed:
                continue
        store.commit_transaction(txns.pop())
        query.run()
        for topic in ("t", "u"):
            log = store.reader(topic, isolation_level=level)  # type: ignore[arg-type]
            assert query.values(topic) == [message.value for message in log]
            assert row_json(store.reports.subscription_stats(topic, "s"))["msgBacklog"] == 0
        assert store.maintenance.verify_store(full=True) == []


def test_a_batch_at_read_committed_ends_before_an_open_transaction(store: Store, path: str) -> None:
    """And the stream goes on when it has ended."""
    store.create_topic("t")
    query = Query(path, topic="t", subscription="s")
    query.run()
    send(store, "t", b"1")
    txn = store.begin_transaction()
    with store.create_producer("t") as producer:
        producer.send(b"held", txn=txn)
    send(store, "t", b"2")
    query.run()
    assert query.values() == [b"1"]
    store.commit_transaction(txn)
    query.run()
    assert query.values() == [b"1", b"held", b"2"]


def test_at_read_uncommitted_everything_comes_with_its_state(store: Store, path: str) -> None:
    """Open, and aborted before the batch was planned."""
    store.create_topic("t")
    query = Query(path, topic="t", startingPosition="earliest", isolationLevel="READ_UNCOMMITTED")
    txns = [store.begin_transaction(), store.begin_transaction()]
    with store.create_producer("t") as producer:
        for txn, value in zip(txns, (b"1", b"2"), strict=True):
            producer.send(value, txn=txn)
    store.admin.transactions.abort_transaction(txns[0])
    query.run()
    assert [(row["value"], row["txnState"]) for row in query.output[0]] == [(b"1", "ABORTED"), (b"2", "OPEN")]


def test_the_end_of_what_is_available_now_is_noted_at_the_beginning(store: Store, path: str) -> None:
    """What comes while such a query runs is left to the next one, a new topic too."""
    store.create_topic("t1")
    send(store, "t1", b"1", b"2", b"3")
    stream = reader(path, topicsPattern="t.", startingPosition="earliest", maxMessagesPerTrigger="2")
    stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    send(store, "t1", b"4")
    store.create_topic("t2")
    send(store, "t2", b"new")
    limit = stream.getDefaultReadLimit()
    first = stream.latestOffset(start, limit)
    second = stream.latestOffset(first, limit)
    assert (first, second) == ({"t1": "1:1"}, {"t1": "1:2"})
    assert stream.latestOffset(second, limit) == second
    assert stream.latestOffset({**second, "t2": "1:-1"}, limit) == {**second, "t2": "1:-1"}


def test_the_latest_offset_is_reported_and_the_cursor_follows(store: Store, path: str) -> None:
    """The lag is in the progress of the query, and in that of the subscription, also after the last batch."""
    store.create_topic("t")
    stream = reader(path, subscription="s")
    start = stream.initialOffset()
    send(store, "t", b"1", b"2", b"3")
    assert stream.reportLatestOffset() == {"t": {"position": "1:2"}}
    end = stream.latestOffset(start, ReadMaxRows(2))
    assert stream.reportLatestOffset() == {"t": {"position": "1:2", "behind": 1}}
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 3
    last = stream.latestOffset(end, ReadMaxRows(2))
    assert stream.reportLatestOffset() == {"t": {"position": "1:2", "behind": 0}}
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 1
    stream.commit(end)
    assert row_json(store.reports.subscription_stats("t", "s"))["markDeletePosition"] == "1:1"
    assert stream.latestOffset(last, ReadMaxRows(2)) == last
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0


def test_a_topic_that_comes_later_is_read_from_its_beginning(store: Store, path: str) -> None:
    """If its name matches; and it gets the subscription too."""
    store.create_topic("t1")
    query = Query(path, topicsPattern="t.", subscription="s")
    query.run()
    send(store, "t1", b"1")
    query.run()
    store.create_topic("t2")
    send(store, "t2", b"2", b"3")
    query.run()
    assert (query.values("t1"), query.values("t2")) == ([b"1"], [b"2", b"3"])
    assert row_json(store.reports.subscription_stats("t2", "s"))["msgBacklog"] == 0


def test_an_older_copy_of_the_store_is_told_from_it_before_a_cursor_moves(store: Store, path: str) -> None:
    """By an offset beyond the end of the topic."""
    store.create_topic("t")
    stream = reader(path, subscription="s")
    start = stream.initialOffset()
    send(store, "t", b"1")
    with pytest.raises(InvalidPosition, match="an older copy"):
        stream.latestOffset({"t": "1:7"}, ReadAllAvailable())
    assert row_json(store.reports.subscription_stats("t", "s"))["markDeletePosition"] == start["t"]


def test_an_end_before_the_start_reads_nothing(store: Store, path: str) -> None:
    """As does an empty batch."""
    store.create_topic("t")
    send(store, "t", b"1", b"2")
    stream = reader(path, startingPosition="earliest")
    assert stream.partitions({"t": "1:1"}, {"t": "1:0"}) == []
    assert stream.partitions({"t": "1:1"}, {"t": "1:1"}) == []


def test_a_stream_starts_at_a_whole_entry(store: Store, path: str) -> None:
    """Its offsets are positions of entries."""
    store.create_topic("t")
    send(store, "t", b"1")
    with pytest.raises(InvalidPosition, match="whole entry"):
        reader(path, startingPosition="1:0:1").initialOffset()


def test_a_stream_reads_selected_keys_alone(store: Store, path: str) -> None:
    """Each micro-batch holds the messages of these keys; limits and progress count all messages."""
    store.create_topic("t", ledger_entries_max=2)
    with store.create_producer("t") as producer:
        for number in range(9):
            producer.send(b"%d" % number, key=[b"a", b"b", None][number % 3])
    stream = reader(path, startingPosition="earliest", keys="b,c", maxMessagesPerTrigger="4")
    begin = stream.initialOffset()
    middle = stream.latestOffset(begin, ReadMaxRows(4))
    end = stream.latestOffset(middle, ReadAllAvailable())
    batches = [
        [row["value"] for part in parts for batch in stream.read(part) for row in batch.to_pylist()]
        for parts in (stream.partitions(begin, middle), stream.partitions(middle, end))
    ]
    assert batches == [[b"1"], [b"4", b"7"]]
    stream.stop()
