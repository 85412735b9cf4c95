"""Compaction: `storage/txn/compaction.py`, by its rules, and as a property of random histories beside a simple model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from storage import (
    EARLIEST,
    Consumer,
    IsolationLevel,
    Message,
    MessageId,
    Position,
    Store,
    SubscriptionType,
    TxnID,
    faults,
)
from storage.disk.schema import ACKS, COMPACTED, COMPACTED_KEYS, TOMBSTONES
from storage.errors import InvalidValue
from storage.limits import TOMBSTONE_RETENTION_MS
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.txn import compaction
from storage.txn.aborted import AbortedSet
from tests.model_runs import examples
from tests.storage.conftest import check_whole

Row = tuple[str, str | None, str | None]


class Killed(BaseException):
    """Stands for a kill: nothing below catches it."""


def rows(messages: list[Message]) -> list[Row]:
    """Id, key and value of messages, as text."""
    return [
        (
            str(message.message_id),
            None if message.key is None else message.key.decode(),
            None if message.value is None else message.value.decode(),
        )
        for message in messages
    ]


def read(store: Store, *, compacted: bool = True, start: MessageId | None = None) -> list[Row]:
    reader = store.reader("t", read_compacted=compacted, start=start or EARLIEST)
    return rows(list(reader))


def send(store: Store, *pairs: tuple[str | None, str | None], txn: TxnID | None = None) -> None:
    """Send messages of key and value, one entry each."""
    with store.create_producer("t", connected=False) as producer:
        for key, value in pairs:
            producer.send(None if value is None else value.encode(), key=key, txn=txn)


def send_batch(store: Store, *pairs: tuple[str | None, str | None]) -> None:
    """Send messages of key and value in one entry."""
    with store.create_producer("t", connected=False) as producer:
        values = [None if value is None else value.encode() for _, value in pairs]
        producer.send_batch(values, keys=[key for key, _ in pairs])


def compact(store: Store) -> None:
    store.admin.topics.compact_topic("t")


def count(store: Store) -> int:
    """Records of compacted views, of every generation."""
    with store.connection.view() as view:
        return sum(view.count(database) for database in (COMPACTED, COMPACTED_KEYS, TOMBSTONES))


# Rules


def test_the_newest_committed_message_of_each_key_stays_at_its_position(store: Store) -> None:
    """Earlier ones of the key are gone, messages without a key stay, and the tail behind the horizon is whole."""
    send(store, ("a", "1"), (None, "x"), ("b", "2"), ("a", "3"), ("", "4"), (None, "y"))
    compact(store)
    view = [("1:1", None, "x"), ("1:2", "b", "2"), ("1:3", "a", "3"), ("1:4", "", "4"), ("1:5", None, "y")]
    assert read(store) == view
    send(store, ("a", "5"), ("a", "6"))
    assert read(store) == [*view, ("1:6", "a", "5"), ("1:7", "a", "6")]
    assert len(read(store, compacted=False)) == 8


def test_messages_of_a_batch_keep_their_batch_index_and_all_they_said(store: Store) -> None:
    """Producer, sequence id, epoch, properties, times and transaction are those of the original."""
    txn = store.begin_transaction()
    with store.create_producer("t", producer_name="p", access_mode="Exclusive") as producer:
        producer.send_batch(
            [b"1", b"2", b"3"], keys=["a", "b", "a"], properties=[{"n": "1"}, None, {"n": "3"}], txn=txn
        )
        store.commit_transaction(txn)
    compact(store)
    originals = {str(message.message_id): message for message in store.reader("t")}
    kept = list(store.reader("t", read_compacted=True))
    assert [str(message.message_id) for message in kept] == ["1:0:1", "1:0:2"]
    for message in kept:
        original = originals[str(message.message_id)]
        for name in (
            "key", "value", "properties", "event_time", "publish_time", "producer_name", "sequence_id", "epoch",
            "txn_id", "txn_state",
        ):  # fmt: skip
            assert getattr(message, name) == getattr(original, name), name


def test_nothing_of_an_open_or_aborted_transaction_is_in_the_view(store: Store) -> None:
    """Compaction stops at maxReadPosition; what is aborted before it leaves the older message of the key in place."""
    aborted, open_ = store.begin_transaction(), store.begin_transaction()
    send(store, ("a", "1"))
    send(store, ("a", "never"), txn=aborted)
    store.admin.transactions.abort_transaction(aborted)
    send(store, ("b", "open"), txn=open_)
    send(store, ("a", "behind"))
    compact(store)
    assert read(store) == [("1:0", "a", "1")]
    store.commit_transaction(open_)
    assert read(store) == [("1:0", "a", "1"), ("1:3", "b", "open"), ("1:4", "a", "behind")]
    compact(store)
    assert read(store) == [("1:3", "b", "open"), ("1:4", "a", "behind")]


def test_a_tombstone_stays_for_the_tombstone_retention_and_then_goes(
    store: Store, clock: ManualClock
) -> None:
    """The time counts from its entry into the view, not from its publication."""
    send(store, ("a", "1"), ("b", "1"), ("a", None), ("c", None))
    clock.advance(TOMBSTONE_RETENTION_MS / 1000 + 1)
    compact(store)
    assert read(store) == [("1:1", "b", "1"), ("1:2", "a", None), ("1:3", "c", None)]
    clock.advance(TOMBSTONE_RETENTION_MS / 1000 - 1)
    compact(store)
    assert len(read(store)) == 3
    send(store, ("c", "again"))
    compact(store)
    clock.advance(1)
    compact(store)
    assert read(store) == [("1:1", "b", "1"), ("2:0", "c", "again")]


def test_a_null_without_a_key_is_a_message_as_any_other(store: Store, clock: ManualClock) -> None:
    """A tombstone has a key; without one there is nothing to delete, so the message stays."""
    store.admin.topics.set_compaction("t", tombstone_retention_ms=0)
    send(store, (None, None), ("a", None))
    compact(store)
    clock.advance(1)
    compact(store)
    assert read(store) == [("1:0", None, None)]


def test_the_view_survives_the_trimming_of_its_originals_and_what_is_not_in_it_is_kept(store: Store) -> None:
    """Retention 0 trims what is compacted; the tail is held back, by the compaction, until it is compacted too."""
    store.admin.topics.set_retention("t", time_ms=0)
    send(store, ("a", "1"), ("b", "2"), ("a", "3"))
    compact(store)
    store.admin.topics.trim_topic("t")
    assert read(store, compacted=False) == []
    assert read(store) == [("1:1", "b", "2"), ("1:2", "a", "3")]
    send(store, ("b", "4"))
    trimmed = store.admin.topics.trim_topic("t").effects
    assert trimmed.held_by is not None and trimmed.held_by.kind == "compaction"
    assert read(store) == [("1:1", "b", "2"), ("1:2", "a", "3"), ("2:0", "b", "4")]
    compact(store)
    store.admin.topics.trim_topic("t")
    assert read(store) == [("1:2", "a", "3"), ("2:0", "b", "4")]


def test_a_reader_begins_inside_the_view(store: Store) -> None:
    """At a position, or at a batch index, that need not be in the view itself."""
    send_batch(store, ("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"))
    send(store, ("b", "5"), ("d", "6"))
    compact(store)
    assert read(store, start=MessageId(1, 0, 3)) == [
        ("1:0:3", "c", "4"),
        ("1:1", "b", "5"),
        ("1:2", "d", "6"),
    ]
    assert read(store, start=MessageId(1, 0, 1))[0] == ("1:0:2", "a", "3")
    assert read(store, start=MessageId(1, 2)) == [("1:2", "d", "6")]
    assert read(store, start=MessageId(1, 7)) == []


def test_a_reader_between_whose_pages_the_topic_is_compacted_meets_every_key(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that is replaced before the reader comes to it is read at its later position."""
    monkeypatch.setattr("storage.topic.compaction.compacted_view.PAGE_MESSAGES", 1)
    send(store, ("a", "1"), ("b", "1"), ("c", "1"))
    compact(store)
    reader = store.reader("t", read_compacted=True)
    first = reader.read_batch(1)
    send(store, ("b", "2"), ("a", "2"))
    compact(store)
    assert rows(first + list(reader)) == [
        ("1:0", "a", "1"),
        ("1:2", "c", "1"),
        ("1:3", "b", "2"),
        ("1:4", "a", "2"),
    ]


def test_read_uncommitted_and_sharing_types_are_refused(store: Store) -> None:
    """The view has committed messages alone, and its gaps are acknowledged in order."""
    with pytest.raises(InvalidValue, match="READ_COMMITTED"):
        store.reader("t", isolation_level="READ_UNCOMMITTED", read_compacted=True)
    for type_ in ("Shared", "Key_Shared"):
        with pytest.raises(InvalidValue, match="Exclusive and Failover"):
            store.subscribe("t", "s", subscription_type=type_, read_compacted=True)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="READ_COMMITTED"):
        store.subscribe(
            "t", "s", subscription_isolation_level=IsolationLevel.READ_UNCOMMITTED, read_compacted=True
        )
    assert store.reports.list_subscriptions("t") == []


def test_a_consumer_acknowledges_what_was_compacted_away_by_passing_it(store: Store) -> None:
    """With every message of the view acknowledged, nothing is left of the backlog."""
    send(store, *((f"k{number % 3}", str(number)) for number in range(50)))
    compact(store)
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        messages = consumer.receive_batch(100)
        assert rows(messages) == [("1:47", "k2", "47"), ("1:48", "k0", "48"), ("1:49", "k1", "49")]  # type: ignore[arg-type]
        consumer.acknowledge(messages[1])
        stats = store.reports.subscription_stats("t", "s").row.stats
        assert (stats.mark_delete_position, stats.msg_backlog) == (Position(1, 46), 2)
        consumer.acknowledge_cumulative(messages[2])
    stats = store.reports.subscription_stats("t", "s").row.stats
    assert (stats.mark_delete_position, stats.msg_backlog) == (Position(1, 49), 0)


@pytest.mark.parametrize("type_", ["Exclusive", "Failover"])
def test_a_subscription_reads_the_view_where_the_log_was_trimmed(store: Store, type_: str) -> None:
    """Created at the beginning it takes the messages of the view, each until acknowledged, and then the tail."""
    store.admin.topics.set_retention("t", time_ms=0)
    send_batch(store, ("a", "1"), ("b", "2"), ("a", "3"))
    send(store, ("c", "4"), ("c", "5"))
    compact(store)
    store.admin.topics.trim_topic("t")
    send(store, ("d", "6"))
    view = [("1:0:1", "b", "2"), ("1:0:2", "a", "3"), ("1:2", "c", "5"), ("2:0", "d", "6")]
    options = {"initial_position": EARLIEST, "read_compacted": True, "subscription_type": type_}
    with store.subscribe("t", "s", **options) as consumer:  # type: ignore[arg-type]
        received = consumer.receive_batch(10)
        assert rows(received) == view  # type: ignore[arg-type]
        consumer.acknowledge(received[1])
    with store.subscribe("t", "s", read_compacted=True) as consumer:
        again = consumer.receive_batch(10)
        assert rows(again) == [view[0], *view[2:]]  # type: ignore[arg-type]
        txn = store.begin_transaction()
        consumer.acknowledge(again[0], txn=txn)
        store.admin.transactions.abort_transaction(txn)
        third = consumer.receive_batch(10)
        assert rows(third)[0] == view[0]  # type: ignore[arg-type]
        consumer.acknowledge_cumulative(third[-1] if rows(third)[-1] == view[-1] else again[-1])  # type: ignore[arg-type]
    assert store.reports.subscription_stats("t", "s").row.stats.msg_backlog == 0


def test_a_message_that_leaves_the_view_in_flight_is_not_delivered_again(store: Store) -> None:
    """It was replaced by a newer one of its key, which comes instead."""
    store.admin.topics.set_retention("t", time_ms=0)
    send(store, ("a", "1"), ("b", "2"))
    compact(store)
    store.admin.topics.trim_topic("t")
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        assert len(consumer.receive_batch(10)) == 2
        send(store, ("a", "3"))
        compact(store)
    with store.subscribe("t", "s", read_compacted=True) as consumer:
        received = consumer.receive_batch(10)
        assert rows(received) == [("1:1", "b", "2"), ("2:0", "a", "3")]  # type: ignore[arg-type]
        consumer.acknowledge(received)
    stats = store.reports.subscription_stats("t", "s").row.stats
    assert (stats.msg_backlog, stats.mark_delete_position) == (0, Position(2, 0))


def trimmed_to_the_view(store: Store, *pairs: tuple[str | None, str | None]) -> None:
    """Send messages that only the compacted view has in the end."""
    store.admin.topics.set_retention("t", time_ms=0)
    send(store, *pairs)
    compact(store)
    store.admin.topics.trim_topic("t")


def mark_delete(store: Store) -> Position:
    return store.reports.subscription_stats("t", "s").row.stats.mark_delete_position


def test_acknowledged_messages_that_leave_the_view_do_not_move_the_mark_back(store: Store) -> None:
    """One by one, in runs and in ranges; what the mark has passed is not acknowledged again, and goes."""
    trimmed_to_the_view(store, ("a", "1"), ("b", "1"), ("x", "1"), ("c", "1"), ("d", "1"))
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        received = list(consumer.receive_batch(10))
        consumer.acknowledge([received[1], received[3], received[4]])
        send(store, ("b", "2"), ("x", "2"), ("d", "2"))
        compact(store)
        consumer.acknowledge(received[0])
        assert store.maintenance.verify_store(full=True) == []
        assert mark_delete(store) < Position(1, 2)
        consumer.acknowledge(received[2])
        assert mark_delete(store) == Position(1, 4)
        consumer.acknowledge(list(consumer.receive_batch(10)))
    stats = store.reports.subscription_stats("t", "s").row.stats
    assert (stats.msg_backlog, stats.mark_delete_position) == (0, Position(2, 2))
    with store.connection.view() as view:
        assert view.count(ACKS) == 0


def test_a_message_of_the_view_in_flight_or_pending_is_no_damage(store: Store) -> None:
    """Verify counts the messages of an entry by the log, which does not have this one."""
    trimmed_to_the_view(store, ("a", "1"), ("b", "1"), ("c", "1"))
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        received = list(consumer.receive_batch(10))
        txn = store.begin_transaction()
        consumer.acknowledge(received[1], txn=txn)
        consumer.acknowledge(received[2])
        assert store.maintenance.verify_store(full=True) == []
        store.commit_transaction(txn)
        assert store.maintenance.verify_store(full=True) == []
        consumer.acknowledge(received[0])


@pytest.mark.parametrize("is_cumulative", [False, True])
def test_an_abort_counts_acknowledgements_of_what_only_the_view_has(
    store: Store, is_cumulative: bool
) -> None:
    """They are in no class of the backlog, and are delivered again all the same."""
    trimmed_to_the_view(store, ("a", "1"), ("b", "1"), ("c", "1"))
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        received = list(consumer.receive_batch(10))
        txn = store.begin_transaction()
        if is_cumulative:
            consumer.acknowledge_cumulative(received[1], txn=txn)
        else:
            consumer.acknowledge(received[:2], txn=txn)
        (effect,) = store.admin.transactions.abort_transaction(txn).effects
        assert effect.messages == 2  # type: ignore[union-attr]
        assert rows(consumer.receive_batch(10))[:2] == rows(received)[:2]


def test_a_subscription_is_moved_to_what_only_the_view_has(store: Store) -> None:
    """By a seek that reads the view; any other ends at the begin of the log."""
    trimmed_to_the_view(store, ("a", "1"), ("b", "1"), ("c", "1"))
    admin = store.admin.subscriptions
    admin.create_subscription("t", "s", initial_position=EARLIEST, read_compacted=True)
    with store.subscribe("t", "s", read_compacted=True) as consumer:
        received = list(consumer.receive_batch(10))
        consumer.acknowledge(received)
    admin.seek_subscription("t", "s", EARLIEST)
    with store.subscribe("t", "s", read_compacted=True) as consumer:
        assert len(list(consumer.receive_batch(10, timeout=0))) < len(received)
    admin.seek_subscription("t", "s", EARLIEST, read_compacted=True)
    with store.subscribe("t", "s", read_compacted=True) as consumer:
        assert rows(consumer.receive_batch(10)) == rows(received)
    admin.create_subscription("t", "shared", subscription_type=SubscriptionType.SHARED)
    with pytest.raises(InvalidValue):
        admin.seek_subscription("t", "shared", EARLIEST, read_compacted=True)


def test_a_consumer_of_the_log_passes_what_only_the_view_has(store: Store) -> None:
    """The subscription does not wait for messages that it will not be given, and holds nothing back for them."""
    trimmed_to_the_view(store, ("a", "1"), ("b", "1"), ("c", "1"))
    with store.subscribe(
        "t", "s", initial_position=EARLIEST, read_compacted=True, receiver_queue_size=1
    ) as first:
        first.acknowledge(first.receive(timeout=0))
    send(store, ("x", "1"), ("y", "1"))
    with store.subscribe("t", "s") as second:
        received = list(second.receive_batch(10))
        assert [row[1] for row in rows(received)] == ["x", "y"]
        second.acknowledge(received)
    assert mark_delete(store) == Position(2, 1)
    compact(store)
    assert store.admin.topics.trim_topic("t").effects.trimmed.messages == 2


def test_truncation_and_deletion_name_the_messages_of_the_view(store: Store) -> None:
    """They may be the only copy."""
    trimmed_to_the_view(store, ("a", "1"), ("b", "1"))
    admin = store.admin.topics
    for effects in (
        admin.truncate_topic("t", dry_run=True).effects,
        admin.delete_topic("t", dry_run=True).effects,
        admin.truncate_topic("t").effects,
    ):
        assert effects.compacted_messages == 2
    assert admin.delete_topic("t", dry_run=True).effects.compacted_messages == 0


def test_a_step_is_bounded_also_within_one_entry(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of ten thousand keys is compacted in many steps, and read as one whole at each."""
    monkeypatch.setattr(compaction, "COMPACTION_STEP_MESSAGES", 100)
    send(store, *((f"k{number}", "old") for number in range(0, 1000, 300)))
    compact(store)
    send_batch(store, *((f"k{number}", str(number)) for number in range(1000)))
    newest = {f"k{number}": str(number) for number in range(1000)}
    steps = 0
    for _ in step_by_step(store):
        steps += 1
        assert {key: value for _, key, value in read(store)} == newest
    assert steps == 10
    assert len(read(store)) == 1000


def step_by_step(store: Store) -> Iterator[None]:
    """Compact topic `t` step by step."""
    while one_step(store):
        yield


def one_step(store: Store) -> bool:
    """One step of the compaction of topic `t`; False where nothing is left to do."""
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        topic = OpenTopic.load(view, topic_id)
        state = compaction_state.load(view, topic_id) or compaction_state.CompactionState()
        stretch = compaction.prepare(topic, state, topic.state.max_read, AbortedSet(), [])
    if stretch is None:
        return False
    store.connection.write(lambda batch: compaction.apply(batch, topic_id, stretch))
    return True


@pytest.mark.parametrize("point", ["topic.half_compacted", "topic.between_compaction_steps"])
def test_a_compaction_that_was_killed_goes_on(
    store: Store, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step it is killed in, the view is complete, and the next run finishes it."""
    monkeypatch.setattr(compaction, "COMPACTION_STEP_MESSAGES", 3)
    send(store, *((f"k{number % 7}", str(number)) for number in range(40)))
    newest = {f"k{number % 7}": str(number) for number in range(40)}
    reached = 0

    def kill() -> None:
        nonlocal reached
        reached += 1
        raise Killed

    for _ in range(3):
        faults.arm(point, kill)
        with pytest.raises(Killed):
            compact(store)
        faults.disarm()
        assert {key: value for _, key, value in read(store)} == newest
    compact(store)
    assert reached == 3
    assert sorted(value or "" for _, _, value in read(store)) == [str(number) for number in range(33, 40)]


def test_two_compactions_of_a_topic_help_each_other(store: Store) -> None:
    """A step that was prepared before another process moved the horizon changes nothing."""
    send(store, ("a", "1"), ("a", "2"))
    with store.connection.view() as view:
        topic_id = topics.get(view, "t").topic_id
        topic = OpenTopic.load(view, topic_id)
        state = compaction_state.CompactionState()
        stretch = compaction.prepare(topic, state, topic.state.max_read, AbortedSet(), [])
    compact(store)
    assert stretch is not None
    assert (
        store.connection.write(lambda batch: compaction.apply(batch, topic_id, stretch)) == compaction.NOTHING
    )
    assert read(store) == [("1:1", "a", "2")]


def test_truncation_and_deletion_remove_the_view(store: Store) -> None:
    """A truncated topic begins an empty view, which counts on; of a deleted one no record is left."""
    send(store, ("a", "1"), ("b", None))
    compact(store)
    store.admin.topics.truncate_topic("t")
    assert (read(store), count(store)) == ([], 0)
    send(store, ("a", "2"), ("a", "3"))
    compact(store)
    assert read(store) == [("2:1", "a", "3")]
    store.admin.topics.delete_topic("t")
    assert count(store) == 0


def test_a_view_that_is_removed_holds_nothing_back(store: Store) -> None:
    """Its records go, and the log is read and trimmed as if it had never been compacted."""
    store.admin.topics.set_retention("t", time_ms=0)
    send(store, ("a", "1"))
    compact(store)
    send(store, ("a", "2"))
    done = store.admin.topics.remove_compacted("t").effects
    assert (done.replaced, done.view.horizon, count(store)) == (1, None, 0)
    assert read(store) == [("1:0", "a", "1"), ("1:1", "a", "2")]
    assert store.admin.topics.trim_topic("t").effects.held_by is None


# The threshold


def test_writers_compact_a_topic_beyond_its_threshold(store: Store, clock: ManualClock) -> None:
    """Without any other command: each write does a little while more than the threshold is not compacted."""
    store.admin.topics.set_compaction("t", threshold=1000)
    for number in range(200):
        send(store, (f"k{number % 5}", str(number)))
        clock.advance(2)
    row = store.reports.topic_compaction("t").compaction
    assert row is not None
    assert row.uncompacted_bytes <= 1500
    assert row.messages == 5
    store.admin.topics.set_compaction("t", threshold="unset")
    for number in range(100):
        send(store, ("k", str(number)))
        clock.advance(2)
    assert store.reports.topic_compaction("t").compaction.uncompacted_bytes > 5000  # type: ignore[union-attr]


def test_gc_compacts_a_topic_beyond_its_threshold(store: Store) -> None:
    """The dry run says how many topics; the run compacts them to the end."""
    store.admin.topics.set_compaction("t", threshold=100)
    send(store, ("a", "1"), ("a", "2"), ("a", "3"))
    assert store.maintenance.collect_garbage(dry_run=True).collected.topics_compacted == 1
    assert store.maintenance.collect_garbage().collected.topics_compacted == 1
    assert read(store) == [("1:2", "a", "3")]
    assert store.maintenance.collect_garbage().collected.topics_compacted == 0


@pytest.mark.parametrize("hard", ["off", "trim"])
def test_gc_trims_in_one_run_what_it_has_compacted(store: Store, clock: ManualClock, hard: str) -> None:
    """The view takes the messages over before their originals go; the dry run says so."""
    store.admin.topics.set_compaction("t", threshold=100)
    store.admin.topics.set_retention("t", time_ms=1000, hard=hard)
    for number in range(20):
        send(store, (f"k{number % 3}", str(number)))
    clock.advance(10)
    store.connection.environment.writer.trims_on_the_way = False
    plan = store.maintenance.collect_garbage(dry_run=True).collected
    done = store.maintenance.collect_garbage().collected
    assert (plan.topics_compacted, plan.messages_trimmed) == (1, 20)
    assert (done.topics_compacted, done.messages_trimmed) == (1, 20)
    assert [row[2] for row in read(store)] == ["17", "18", "19"]
    assert read(store, compacted=False) == []


@pytest.mark.parametrize("wrong", [0, -1, "always", 1.5, True])
def test_a_threshold_out_of_bounds_is_refused(store: Store, wrong: object) -> None:
    with pytest.raises(InvalidValue, match="threshold"):
        store.admin.topics.set_compaction("t", threshold=wrong)  # type: ignore[arg-type]


def test_the_dry_run_counts_what_the_run_examines(store: Store) -> None:
    """Aborted messages and markers not."""
    txn = store.begin_transaction()
    send(store, ("a", "1"), ("a", "2"))
    send(store, ("a", "never"), txn=txn)
    store.admin.transactions.abort_transaction(txn)
    dry = store.admin.topics.compact_topic("t", dry_run=True).effects
    done = store.admin.topics.compact_topic("t", reason="by hand").effects
    assert dry.examined == done.examined == 2
    assert (done.view.messages, done.view.horizon) == (1, Position(1, 3))
    assert [record.action for record in store.reports.list_audit_records()][:1] == ["topics compact"]


# Random histories

KEYS = [None, "a", "b", "c"]
steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("send"), st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), min_size=1, max_size=4)
        ),
        st.tuples(
            st.sampled_from(
                [
                    "begin",
                    "txn-send",
                    "commit",
                    "abort",
                    "compact",
                    "step",
                    "step",
                    "trim",
                    "wait",
                    "receive",
                    "reopen",
                ]
            ),
            st.integers(0, 3),
        ),
        st.tuples(st.sampled_from(["truncate", "join"]), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=examples(150), deadline=None)
@given(steps=steps, limit=st.integers(1, 4))
def test_a_compacted_topic_agrees_with_a_simple_model(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, object]], limit: int
) -> None:
    """Readers see the model's messages after every step, and a subscription gets the newest of each key in the end."""
    path, clock = str(tmp_path_factory.mktemp("compacted") / "store"), ManualClock()
    Store.create(path, clock=clock)
    with pytest.MonkeyPatch.context() as patch, Store.open(path, clock=clock) as store:
        patch.setattr(compaction, "COMPACTION_STEP_MESSAGES", 2)
        history = _History(store, clock, limit)
        for what, argument in steps:
            history.do(what, argument)
            history.compare()
        history.drain()
    check_whole(path, clock)


class _Sent:
    """A message of the model."""

    def __init__(self, row: Row, txn: TxnID | None) -> None:
        self.row = row
        self.txn = txn
        self.place = _place(row[0])
        self.entered_ms: int | None = None


def _place(text: str) -> tuple[int, ...]:
    numbers = tuple(int(part) for part in text.split(":"))
    return numbers if len(numbers) == 3 else (*numbers, 0)


class _History:
    """A topic, and the plain list of what was sent to it."""

    def __init__(self, store: Store, clock: ManualClock, limit: int) -> None:
        self.store, self.clock = store, clock
        self.sent: list[_Sent] = []
        self.open: list[TxnID] = []
        self.aborted: set[TxnID] = set()
        self.acknowledged: list[Row] = []
        self.consumer: Consumer | None = None
        self.expired: set[str | None] = set()
        self.number = 0
        store.create_topic("t", ledger_entries_max=limit)
        store.admin.topics.set_retention("t", time_ms=0)
        store.admin.topics.set_compaction("t", threshold=1 << 40, tombstone_retention_ms=60_000)
        store.admin.subscriptions.create_subscription("t", "log", initial_position=EARLIEST)

    def do(self, what: str, argument: object) -> None:
        number = argument if isinstance(argument, int) else 0
        if what == "send":
            self._send(argument, None)  # type: ignore[arg-type]
        elif what in ("join", "reopen", "receive"):
            self._consume(what, number)
        elif what == "txn-send" and self.open:
            self._send([(KEYS[number], True)], self.open[number % len(self.open)])
        elif what == "begin" and len(self.open) < 3:
            self.open.append(self.store.begin_transaction())
        elif what in ("commit", "abort") and number < len(self.open):
            self._end(what, self.open.pop(number))
        elif what == "compact":
            compact(self.store)
            self._note_entered(expires=True)
        elif what == "step":
            one_step(self.store)
            self._note_entered(expires=False)
        elif what == "trim":
            self.store.admin.subscriptions.clear_backlog("t", "log")
            self.store.admin.topics.trim_topic("t")
        elif what == "wait":
            self.clock.advance(25)
        elif what == "truncate" and not self.open:
            self.store.admin.topics.truncate_topic("t", force=True)
            self.sent, self.acknowledged = [], []

    def _consume(self, what: str, number: int) -> None:
        if what == "join" and self.consumer is None:
            self._attach()
        elif what == "reopen" and self.consumer is not None:
            self.consumer.close()
            self._attach()
        elif what == "receive" and self.consumer is not None:
            self._receive(number)

    def _attach(self) -> None:
        self.consumer = self.store.subscribe(
            "t", "state", initial_position=EARLIEST, read_compacted=True, receiver_queue_size=3
        )

    def _send(self, pairs: list[tuple[str | None, bool]], txn: TxnID | None) -> None:
        rows = []
        for key, has_value in pairs:
            self.number += 1
            rows.append((key, str(self.number) if has_value else None))
        with self.store.create_producer("t", connected=False) as producer:
            values = [None if value is None else value.encode() for _, value in rows]
            receipts = producer.send_batch(values, keys=[key for key, _ in rows], txn=txn)
        ids = [str(message_id) for message_id in receipts]
        self.sent += [_Sent((place, *row), txn) for place, row in zip(ids, rows, strict=True)]

    def _end(self, what: str, txn: TxnID) -> None:
        if what == "commit":
            self.store.commit_transaction(txn)
        else:
            self.store.admin.transactions.abort_transaction(txn)
            self.aborted.add(txn)

    def _receive(self, number: int) -> None:
        assert self.consumer is not None
        messages = self.consumer.receive_batch(number + 1, 0)
        for message in messages if number % 2 else messages[:1]:
            self.consumer.acknowledge(message)
            (row,) = rows([message])
            assert row not in self.acknowledged, "acknowledged messages do not come again"
            self.acknowledged.append(row)

    # The model of the view

    def _visible(self) -> list[_Sent]:
        """Committed messages up to maxReadPosition, in order."""
        firsts = [sent.place for sent in self.sent if sent.txn in self.open]
        through = min(firsts, default=(1 << 60,))
        return [sent for sent in self.sent if sent.place < through and sent.txn not in self.aborted]

    def _end_of_view(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The last place of the view that readers see, and the last one that compaction has taken in."""
        with self.store.connection.view() as view:
            state = compaction_state.load(view, topics.get(view, "t").topic_id)
        assert state is not None
        if state.horizon is None:
            horizon: tuple[int, ...] = (0, -1, 1 << 30)
        else:
            horizon = (*state.horizon, 1 << 30)
        beyond = sorted({sent.place[:2] for sent in self._visible() if sent.place > horizon})
        taken = (*beyond[0], state.partial - 1) if state.partial else horizon
        return horizon, taken

    def _note_entered(self, *, expires: bool) -> None:
        """Note the messages that came into the view, and those that the run removed for their age."""
        now_ms = self.clock.wall_ms()
        _, taken = self._end_of_view()
        for sent in self._visible():
            if sent.place <= taken and sent.entered_ms is None:
                sent.entered_ms = now_ms
        if expires:
            for sent in self._newest(taken):
                if self._is_tombstone(sent) and sent.entered_ms <= now_ms - 60_000:  # type: ignore[operator]
                    sent.row = ("gone", sent.row[1], None)
                    self.expired.add(sent.row[1])

    @staticmethod
    def _is_tombstone(sent: _Sent) -> bool:
        return sent.row[1] is not None and sent.row[2] is None

    def _newest(self, through: tuple[int, ...]) -> list[_Sent]:
        newest: dict[object, _Sent] = {}
        for sent in self._visible():
            if sent.place <= through:
                newest[sent.row[1] if sent.row[1] is not None else sent.place] = sent
        return sorted(newest.values(), key=lambda sent: sent.place)

    def compare(self) -> None:
        """A reader of the compacted topic sees the view and the tail; one of the log never sees less than the tail."""
        horizon, taken = self._end_of_view()
        view = [sent for sent in self._newest(taken) if sent.place <= horizon and sent.row[0] != "gone"]
        tail = [sent for sent in self._visible() if sent.place > horizon]
        assert read(self.store) == [sent.row for sent in view + tail]
        log = [row for row in read(self.store, compacted=False) if _place(row[0]) > horizon]
        assert log == [sent.row for sent in tail]

    def drain(self) -> None:
        """The subscription ends with the newest message of each key, whatever was compacted and trimmed meanwhile."""
        for txn in self.open:
            self.store.commit_transaction(txn)
        self.open = []
        if self.consumer is None:
            return
        # What was received and not acknowledged comes again to the next consumer.
        self.consumer.close()
        self._attach()
        while messages := self.consumer.receive_batch(3, 0):
            for row in rows(list(messages)):
                assert row not in self.acknowledged
                self.acknowledged.append(row)
            self.consumer.acknowledge(messages)
        last: dict[str | None, Row] = {}
        for row in sorted(self.acknowledged, key=lambda row: _place(row[0])):
            last[row[1]] = row
        for sent in self._newest((1 << 60,)):
            if sent.row[1] is not None and sent.row[1] not in self.expired:
                assert last[sent.row[1]] == sent.row
        plain = {row for row in self.acknowledged if row[1] is None}
        assert {sent.row for sent in self._visible() if sent.row[1] is None} <= plain
        stats = self.store.reports.subscription_stats("t", "state").row.stats
        assert stats.msg_backlog == 0
        self.consumer.close()
