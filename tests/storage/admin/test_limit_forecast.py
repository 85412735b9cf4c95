"""Forecasts of limits: `storage/admin/limit_forecast.py`, beside what the run then does."""

from __future__ import annotations

import pytest

from storage import EARLIEST, Store, SubscriptionType
from storage.limits import SEQUENCE_RETENTION_MS
from storage.process.clock import ManualClock
from tests.storage.subscription.test_trimming import first_position, send

MINUTE_MS = 60_000


def letters(store: Store) -> str:
    """A dead-letter topic with two letters, and a subscription that has not come for them."""
    send(store, "t", 2)
    with store.subscribe(
        "t", "s", initial_position=EARLIEST, subscription_type=SubscriptionType.SHARED, max_redeliver_count=0
    ) as consumer:
        for _ in range(2):
            for message in consumer.receive_batch(10, timeout=0):
                consumer.negative_acknowledge(message, delay=0)
    (name,) = (row.name for row in store.reports.list_topics() if row.name != "t")
    store.admin.subscriptions.create_subscription(name, "late", initial_position=EARLIEST)
    return name


def test_the_stores_limits_leave_dead_letters_alone(store: Store, clock: ManualClock) -> None:
    """Unless they are set on the topic itself; the forecast of either setting says the same."""
    name = letters(store)
    clock.advance(120)
    set_ = store.admin.settings.set_retention
    asked = {"time_ms": MINUTE_MS, "hard": "trim", "ttl_ms": MINUTE_MS, "expire_after_ms": MINUTE_MS}
    plan = set_(**asked, dry_run=True).effects.lets_go  # type: ignore[arg-type]
    assert (plan.messages_lost, plan.messages_expired, plan.subscriptions_expired) == (0, 0, 1)
    set_(**asked)  # type: ignore[arg-type]
    assert store.maintenance.collect_garbage().collected.messages_lost == 0
    assert store.reports.subscription_stats(name, "late").row.stats.msg_backlog == 2
    own = store.admin.topics.set_retention(name, ttl_ms=MINUTE_MS).effects
    assert (own.in_force.ttl_ms, own.in_force.hard, own.in_force.time_ms) == (MINUTE_MS, None, None)
    assert own.lets_go.messages_expired == 2
    assert store.maintenance.collect_garbage().collected.messages_expired == 2
    assert store.maintenance.verify_store(full=True) == []


def test_the_retention_of_dead_letters_has_a_forecast(store: Store, clock: ManualClock) -> None:
    """It concerns topics with dead letters alone."""
    name = letters(store)
    store.admin.subscriptions.delete_subscription(name, "late")
    clock.advance(120)
    done = store.admin.settings.set_dead_letter_retention(time_ms=MINUTE_MS).effects
    assert (done.lets_go.messages, done.before.time_ms, done.limits.time_ms) == (2, None, MINUTE_MS)
    assert store.maintenance.collect_garbage().collected.messages_trimmed == 2


def test_sequence_ids_of_messages_that_a_hard_limit_takes_are_forecast(
    store: Store, clock: ManualClock
) -> None:
    """A dry run of gc forgets what the run forgets, which trims first."""
    store.create_topic("u", ledger_entries_max=1)
    with store.create_producer("u", producer_name="gone", connected=False) as producer:
        producer.send(b"m", sequence_id=7)
    store.admin.subscriptions.create_subscription("u", "slow", initial_position=EARLIEST)
    clock.advance(SEQUENCE_RETENTION_MS / 1000 + 60)
    store.connection.environment.writer.trims_on_the_way = False
    store.admin.topics.set_retention("u", time_ms=MINUTE_MS, hard="trim")
    plan = store.maintenance.collect_garbage(dry_run=True).collected
    done = store.maintenance.collect_garbage().collected
    assert plan._replace(purge_steps=0) == done._replace(purge_steps=0)
    assert (done.messages_lost, done.forgotten.sequence_ranges_forgotten) == (1, 1)


@pytest.mark.parametrize("limits", [{"time_ms": MINUTE_MS}, {"size": 1}])
def test_a_hard_limit_keeps_what_is_not_compacted(
    store: Store, clock: ManualClock, limits: dict[str, int]
) -> None:
    """Older values would come back; the horizon is named, and ends the ledgers that go."""
    store.create_topic("u", ledger_entries_max=2)
    store.admin.subscriptions.create_subscription("u", "slow", initial_position=EARLIEST)
    with store.create_producer("u", connected=False) as producer:
        for number in range(5):
            producer.send(b"%d" % number, key=b"k")
        store.admin.topics.compact_topic("u")
        for number in range(5, 9):
            producer.send(b"%d" % number, key=b"k")
    clock.advance(61)
    store.connection.environment.writer.trims_on_the_way = False
    store.admin.topics.set_retention("u", hard="trim", **limits)  # type: ignore[arg-type]
    freeable = {row.action.call: row.freed_bytes for row in store.reports.list_freeable()}
    plan = store.admin.topics.trim_topic("u", dry_run=True).effects
    done = store.admin.topics.trim_topic("u").effects
    assert plan == done
    assert (done.first_position, done.trimmed.messages, [loss.messages for loss in done.lost]) == (
        (3, 0),
        4,
        [4],
    )
    assert freeable["store.admin.topics.trim_topic"] == done.trimmed.bytes
    assert done.held_by is not None and done.held_by.kind == "compaction"
    shown = store.reports.topic_retention("u")
    assert shown.held_by == done.held_by and shown.lets_go_with is not None
    assert shown.lets_go_with.call == "store.admin.topics.compact_topic"
    assert store.maintenance.verify_store(full=True) == []
    store.admin.topics.compact_topic("u")
    assert [message.value for message in store.reader("u", start=EARLIEST, read_compacted=True)] == [b"8"]
    store.admin.topics.trim_topic("u")
    assert first_position(store, "u")[0] >= 5
    assert store.maintenance.verify_store(full=True) == []


def test_what_is_not_compacted_refuses_no_producer(store: Store, clock: ManualClock) -> None:
    store.admin.topics.set_retention("t", size=1, hard="refuse")
    store.admin.topics.set_compaction("t", threshold=1 << 30)
    send(store, "t", 5)
    hold = store.reports.topic_retention("t").held_by
    assert hold is not None and hold.kind == "compaction"


def test_a_subscription_in_the_view_moves_with_a_hard_limit(store: Store, clock: ManualClock) -> None:
    """It goes on behind what went; the view stays for readers and new subscriptions."""
    store.create_topic("u", ledger_entries_max=2)
    with store.create_producer("u", connected=False) as producer:
        for number in range(4):
            producer.send(b"%d" % number, key=b"%d" % number)
        store.admin.topics.compact_topic("u")
        clock.advance(61)
        store.admin.topics.set_retention("u", time_ms=MINUTE_MS, hard="trim")
        store.admin.topics.trim_topic("u")
        with store.subscribe("u", "view", initial_position=EARLIEST, read_compacted=True) as consumer:
            received = consumer.receive_batch(2)
            for number in range(4, 8):
                producer.send(b"%d" % number, key=b"%d" % number)
            store.admin.topics.compact_topic("u")
            clock.advance(61)
            store.admin.topics.trim_topic("u")
            assert store.maintenance.verify_store(full=True) == []
            consumer.acknowledge(received[0])
            assert consumer.receive_batch(10, timeout=0) == []
    assert store.reports.subscription_stats("u", "view").row.stats.msg_lost_counter == 4
    assert len(list(store.reader("u", start=EARLIEST, read_compacted=True))) == 8
    assert store.maintenance.verify_store(full=True) == []
