"""A stream of topics: where it begins, how far a batch goes, and that nothing is lost or comes twice."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from storage import Position, Store
from storage.errors import InvalidPosition, InvalidValue, SubscriptionNotFound, TopicNotFound
from tests.model_runs import examples
from tests.row_json import row_json
from tests.txnctl.spark.asked import struct
from tests.txnctl.spark.micro_batches import Killed, Query
from txnctl.spark import options
from txnctl.spark.source.topic_stream import TopicStreamReader


def send(store: Store, topic: str, *values: bytes) -> None:
    with store.create_producer(topic) as producer:
        for value in values:
            producer.send(value)


def reader(path: str, **given_options: str) -> TopicStreamReader:
    named = (
        given_options
        if "topics" in given_options or "topicsPattern" in given_options
        else {"topic": "t", **given_options}
    )
    return TopicStreamReader(options.topic_stream({"path": path, **named}), struct("value"))


def test_a_stream_from_the_latest_message_keeps_its_start_in_a_subscription(store: Store, path: str) -> None:
    """A driver that dies before its first batch starts again where it began, not at what is the latest by then."""
    store.create_topic("t")
    send(store, "t", b"before")
    query = Query(path, topic="t", subscription="s")
    with pytest.raises(Killed):
        query.run(iter([True, True, False]).__next__)
    send(store, "t", b"1", b"2")
    query.run()
    assert query.values() == [b"1", b"2"]


def test_a_stream_from_the_latest_message_without_a_subscription_is_refused(store: Store, path: str) -> None:
    """It could lose messages, and nobody would notice."""
    store.create_topic("t")
    with pytest.raises(InvalidValue, match="needs a subscription"):
        reader(path).initialOffset()
    with pytest.raises(InvalidValue, match="needs a subscription"):
        reader(path, topics="t", startingPosition='{"t": "latest"}').initialOffset()


def test_a_stream_from_the_beginning_needs_no_subscription(store: Store, path: str) -> None:
    """The beginning is the same whenever it is asked for."""
    store.create_topic("t")
    send(store, "t", b"1", b"2")
    query = Query(path, topic="t", startingPosition="earliest")
    query.run()
    assert query.values() == [b"1", b"2"]
    assert row_json(store.reports.list_subscriptions("t")) == []


def test_a_subscription_that_is_there_says_where_to_start(store: Store, path: str) -> None:
    """What it has acknowledged is not read again, whatever startingPosition says."""
    store.create_topic("t")
    store.admin.subscriptions.create_subscription("t", "s")
    send(store, "t", b"1", b"2", b"3")
    store.admin.acknowledgements.acknowledge_through("t", "s", Position(1, 0))
    query = Query(path, topic="t", subscription="s", startingPosition="earliest")
    query.run()
    assert query.values() == [b"2", b"3"]


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


def test_limits_are_shared_among_topics_and_what_one_leaves_goes_to_the_others(
    store: Store, path: str
) -> None:
    """10 messages of two topics: 2 of the small one, and 8 of the large one."""
    for topic, count in (("small", 2), ("large", 30)):
        store.create_topic(topic)
        send(store, topic, *[b"x"] * count)
    stream = reader(path, topics="small,large", startingPosition="earliest", maxMessagesPerTrigger="10")
    assert stream.getDefaultReadLimit() == ReadMaxRows(10)
    assert stream.latestOffset(stream.initialOffset(), ReadMaxRows(10)) == {"large": "1:7", "small": "1:1"}
    assert stream.latestOffset(stream.initialOffset(), ReadAllAvailable()) == {
        "large": "1:29",
        "small": "1:1",
    }


def test_bytes_bound_a_batch_too(store: Store, path: str) -> None:
    """At least one entry is read, however small the bound."""
    store.create_topic("t")
    send(store, "t", *[b"x" * 1000] * 4)
    stream = reader(path, startingPosition="earliest", maxBytesPerTrigger="2500")
    assert stream.getDefaultReadLimit() == ReadMaxBytes(2500)
    assert stream.latestOffset({"t": "1:-1"}, ReadMaxBytes(2500)) == {"t": "1:1"}
    assert stream.latestOffset({"t": "1:-1"}, ReadMaxBytes(1)) == {"t": "1:0"}
    both = reader(path, startingPosition="earliest", maxBytesPerTrigger="2500", maxMessagesPerTrigger="3")
    assert both.latestOffset({"t": "1:-1"}, both.getDefaultReadLimit()) == {"t": "1:1"}


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


@pytest.mark.parametrize(("level", "behind"), [("READ_COMMITTED", 1), ("READ_UNCOMMITTED", 6)])
def test_the_lag_is_what_a_reader_of_that_level_has_before_it(
    store: Store, path: str, level: str, behind: int
) -> None:
    """Aborted messages, and those behind an open transaction, are nothing that READ_COMMITTED could read."""
    store.create_topic("t")
    stream = reader(path, startingPosition="earliest", isolationLevel=level, maxMessagesPerTrigger="1")
    send(store, "t", b"read")
    aborted, held = store.begin_transaction(), store.begin_transaction()
    with store.create_producer("t") as producer:
        producer.send_batch([b"never", b"never"], txn=aborted)
        producer.send(b"waits")
        store.admin.transactions.abort_transaction(aborted)
        producer.send_batch([b"open", b"open"], txn=held)
        producer.send(b"blocked")
    assert stream.latestOffset(stream.initialOffset(), ReadMaxRows(1)) == {"t": "1:0"}
    assert stream.reportLatestOffset()["t"]["behind"] == behind
    store.admin.transactions.abort_transaction(held)


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


def test_a_topic_that_was_created_again_ends_the_stream(store: Store, path: str) -> None:
    """In the process that saw the old one, and after a restart from a checkpoint that knows it."""
    store.create_topic("t")
    send(store, "t", b"1")
    stream = reader(path, startingPosition="earliest")
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    store.admin.topics.delete_topic("t", force=True)
    with pytest.raises(TopicNotFound, match="there is no topic t"):
        stream.latestOffset(end, ReadAllAvailable())
    store.create_topic("t")
    send(store, "t", b"2", b"3")
    for each in (stream, reader(path, startingPosition="earliest")):
        with pytest.raises(TopicNotFound, match="deleted and created again"):
            each.latestOffset(end, ReadAllAvailable())
        with pytest.raises(TopicNotFound, match="deleted and created again"):
            each.partitions({"t": "1:-1"}, end)


@pytest.mark.parametrize(
    ("offset", "kind"),
    [
        ({"t": "9:0"}, InvalidPosition),
        ({"t": "1:77"}, InvalidPosition),
        ({"t": "nonsense"}, InvalidPosition),
        ({"t": 5}, InvalidPosition),
        (["t"], InvalidPosition),
    ],
)
def test_what_stands_in_a_checkpoint_is_checked(
    store: Store, path: str, offset: dict[str, str], kind: type[Exception]
) -> None:
    """Spark does not do it: an offset beyond the end would pass over messages in silence."""
    store.create_topic("t")
    send(store, "t", b"1")
    with pytest.raises(kind):
        reader(path, startingPosition="earliest").latestOffset(offset, ReadAllAvailable())


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


def test_a_subscription_of_another_kind_is_refused(store: Store, path: str) -> None:
    """Of another level, or shared by consumers."""
    store.create_topic("t")
    store.admin.subscriptions.create_subscription("t", "s", subscription_isolation_level="READ_UNCOMMITTED")  # type: ignore[arg-type]
    store.admin.subscriptions.create_subscription("t", "shared", subscription_type="Shared")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="is READ_UNCOMMITTED, and the stream reads READ_COMMITTED"):
        reader(path, subscription="s").initialOffset()
    with pytest.raises(InvalidValue, match="is Shared"):
        reader(path, subscription="shared").initialOffset()


def test_a_subscription_that_is_deleted_is_missed_when_it_should_move(store: Store, path: str) -> None:
    """And is created anew, at the place of the checkpoint, by the query that is started after it."""
    store.create_topic("t")
    query = Query(path, topic="t", subscription="s")
    query.run()
    send(store, "t", b"1")
    query.run()
    store.admin.subscriptions.delete_subscription("t", "s")
    stream = reader(path, subscription="s")
    with pytest.raises(SubscriptionNotFound):
        stream.commit({"t": "1:0"})
    send(store, "t", b"2")
    query.run()
    assert query.values() == [b"1", b"2"]
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0


def test_a_busy_store_does_not_end_a_stream(store: Store, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cursor moves with a later commit instead."""
    store.create_topic("t")
    stream = reader(path, subscription="s")
    stream.initialOffset()
    send(store, "t", b"1")
    from storage.admin.acknowledgements import AcknowledgementAdmin
    from storage.errors import WriterBusy

    def busy(*_: object) -> None:
        raise WriterBusy("the writer gate is held")

    with monkeypatch.context() as patched:
        patched.setattr(AcknowledgementAdmin, "acknowledge_through", busy)
        stream.commit({"t": "1:0"})
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 1
    stream.commit({"t": "1:0"})
    assert row_json(store.reports.subscription_stats("t", "s"))["msgBacklog"] == 0
