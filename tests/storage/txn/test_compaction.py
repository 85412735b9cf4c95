"""The view of compaction, by its rules: `storage/txn/compaction.py`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import (
    EARLIEST,
    IsolationLevel,
    MessageId,
    Position,
    Store,
    SubscriptionType,
    faults,
)
from storage.disk.schema import ACKS
from storage.errors import InvalidValue, MessageNotFound
from storage.limits import TOMBSTONE_RETENTION_MS
from storage.process.clock import ManualClock
from storage.topic import catalogue as topics
from storage.topic.compaction import compaction_state
from storage.topic.open_topic import OpenTopic
from storage.txn import compaction
from storage.txn.aborted import AbortedSet
from tests.storage.txn.compaction_steps import compact, read, rows, send, send_batch

HOUR_NS = 3600 * 1_000_000_000


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


def test_no_tombstone_goes_while_the_clocks_disagree(store: Store, clock: ManualClock) -> None:
    """Nor is one forgotten: it goes once they agree again."""
    send(store, ("a", None))
    compact(store)
    clock.advance(TOMBSTONE_RETENTION_MS / 1000 + 1)
    clock.wall_now_ns += HOUR_NS
    compact(store)
    assert read(store) == [("1:0", "a", None)]
    clock.wall_now_ns -= HOUR_NS
    compact(store)
    assert read(store) == []


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


def test_a_trimmed_topic_is_read_up_to_the_last_message_compacted(store: Store) -> None:
    """Also where that message is the only one of the view."""
    trimmed_to_the_view(store, ("a", "1"), ("a", "2"))
    assert read(store) == [("1:1", "a", "2")]


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


@pytest.mark.parametrize("committed", [True, False])
def test_a_pending_message_that_is_compacted_away_goes_with_the_end_of_its_transaction(
    store: Store, committed: bool
) -> None:
    """A consumer passes over it; after an abort it comes again, as long as the log has it."""
    send(store, ("a", "1"), ("b", "1"))
    txn = store.begin_transaction()
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        consumer.acknowledge(MessageId(1, 0), txn=txn)
        send(store, ("a", "2"))
        compact(store)
        received = consumer.receive_batch(10)
        assert rows(list(received)) == [("1:1", "b", "1"), ("1:2", "a", "2")]
        assert store.maintenance.verify_store(full=True) == []
        if committed:
            store.commit_transaction(txn)
        else:
            store.admin.transactions.abort_transaction(txn)
        consumer.acknowledge(received)
        again = list(consumer.receive_batch(10, 0))
        assert rows(again) == ([] if committed else [("1:0", "a", "1")])
        consumer.acknowledge(again)
    stats = store.reports.subscription_stats("t", "s").row.stats
    assert (stats.msg_backlog, stats.mark_delete_position) == (0, Position(1, 2))


def test_a_trimmed_message_that_was_compacted_away_is_not_there_to_acknowledge(store: Store) -> None:
    """Unless the subscription has passed it: then nothing is left to acknowledge."""
    trimmed_to_the_view(store, ("b", "1"), ("a", "1"), ("a", "2"))
    with store.subscribe("t", "s", initial_position=EARLIEST, read_compacted=True) as consumer:
        with pytest.raises(MessageNotFound):
            consumer.acknowledge(MessageId(1, 1))
        consumer.acknowledge(consumer.receive_batch(10))
        consumer.acknowledge(MessageId(1, 1))
    assert mark_delete(store) == Position(1, 2)


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


# From the first compaction on, a topic keeps what is not compacted yet


def _nothing(store: Store) -> None:
    """A topic without a message."""


def _only_aborted(store: Store) -> None:
    txn = store.begin_transaction()
    send(store, ("never", "0"), txn=txn)
    store.admin.transactions.abort_transaction(txn)


def _only_open(store: Store) -> None:
    send(store, ("open", "0"), txn=store.begin_transaction())


def _only_trimmed(store: Store) -> None:
    send(store, ("gone", "0"))
    store.admin.topics.trim_topic("t")


def _truncated(store: Store) -> None:
    send(store, ("gone", "0"))
    compact(store)
    store.admin.topics.truncate_topic("t")


def _killed(store: Store) -> None:
    """A run that is killed behind its first step, which found nothing."""
    faults.arm("topic.between_compaction_steps", _kill)
    with pytest.raises(KeyboardInterrupt):
        compact(store)
    faults.disarm()


def _kill() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("before", [_nothing, _only_aborted, _only_open, _only_trimmed, _truncated, _killed])
def test_a_first_compaction_that_finds_nothing_keeps_what_follows(
    store: Store, before: Callable[[Store], None]
) -> None:
    """What comes after the first compaction is trimmed only once compacted, whatever that one found."""
    store.admin.topics.delete_topic("t")
    store.create_topic("t", ledger_entries_max=1)
    store.admin.topics.set_retention("t", time_ms=0)
    before(store)
    if before not in (_truncated, _killed):
        compact(store)
    for transaction in store.reports.list_transactions():
        store.admin.transactions.abort_transaction(transaction.txn_id)
    send(store, ("k1", "1"), ("k2", "2"), ("k3", "3"))
    hold = store.admin.topics.trim_topic("t").effects.held_by
    assert hold is not None
    assert hold.kind == "compaction"
    assert store.maintenance.verify_store(full=True) == []
    compact(store)
    store.admin.topics.trim_topic("t")
    assert [(key, value) for _, key, value in read(store)] == [("k1", "1"), ("k2", "2"), ("k3", "3")]
    assert read(store, compacted=False) == []


@pytest.mark.parametrize("hard", ["off", "trim"])
def test_a_topic_with_a_threshold_waits_for_its_first_compaction(
    store: Store, clock: ManualClock, hard: str
) -> None:
    """No limit trims before it: the newest message of a key may be an old one."""
    store.admin.topics.set_compaction("t", threshold=1 << 40)
    store.admin.topics.set_retention("t", time_ms=1000, hard=hard)
    send(store, ("a", "1"))
    clock.advance(10)
    assert store.admin.topics.trim_topic("t").effects.trimmed.messages == 0
    compact(store)
    send(store, ("b", "2"))
    clock.advance(10)
    assert store.admin.topics.trim_topic("t").effects.trimmed.messages == 0
    compact(store)
    assert store.admin.topics.trim_topic("t").effects.trimmed.messages == 2
    assert read(store) == [("1:0", "a", "1"), ("1:1", "b", "2")]


def test_a_first_compaction_beside_a_trimming_goes_on_behind_what_was_trimmed(store: Store) -> None:
    """A first step that was prepared before a trimming holds what is left, and the next step reads that."""
    store.admin.topics.delete_topic("t")
    store.create_topic("t", ledger_entries_max=1)
    store.admin.topics.set_retention("t", time_ms=0)
    with store.connection.view() as view:
        topic = OpenTopic.load(view, topics.get(view, "t").topic_id)
        state = compaction_state.CompactionState()
        first = compaction.prepare(topic, state, topic.state.max_read, AbortedSet(), [])
    assert first is not None
    send(store, ("gone", "0"), ("gone", "1"))
    store.admin.topics.trim_topic("t")
    store.connection.write(lambda batch: compaction.apply(batch, topic.topic_id, first))
    send(store, ("k", "2"))
    compact(store)
    assert [(key, value) for _, key, value in read(store)] == [("k", "2")]
