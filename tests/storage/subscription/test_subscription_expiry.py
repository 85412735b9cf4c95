"""Expiry of subscriptions without a consumer: `storage/subscription/subscription_expiry.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.disk.view import WriteBatch
from storage.errors import SubscriptionNotFound
from storage.process.clock import ManualClock
from storage.subscription import catalogue as subscriptions, cursor as cursors, subscription_expiry
from storage.topic import catalogue as topics
from tests.storage.conftest import check_whole
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import create_subscriptions
from tests.storage.subscription.test_trimming import acknowledge, send

HOUR_MS = 3600_000


@pytest.fixture
def topic(store: Store) -> str:
    """A topic whose subscriptions go after an hour without a consumer."""
    store.create_topic("orders")
    store.admin.topics.set_retention("orders", expire_after_ms=HOUR_MS)
    return "orders"


def names(store: Store, topic: str) -> list[str]:
    return [row.subscription for row in store.reports.list_subscriptions(topic)]


def trim(store: Store, topic: str) -> list[str]:
    """Run the upkeep of the topic; the subscriptions that went."""
    return store.admin.topics.trim_topic(topic).effects.subscriptions_expired


def test_a_subscription_goes_an_hour_after_its_last_consumer_left(
    store: Store, topic: str, clock: ManualClock
) -> None:
    """With a record of what it had not acknowledged; one that is attached stays, as does one that was used since."""
    send(store, topic, 4)
    acknowledge(store, topic, "left", 1)
    with store.subscribe(topic, "attached"):
        clock.advance(1800)
        acknowledge(store, topic, "used", 1)
        clock.advance(1801)
        plan = store.admin.topics.trim_topic(topic, dry_run=True).effects.subscriptions_expired
        assert names(store, topic) == ["attached", "left", "used"]
        assert trim(store, topic) == plan == ["left"]
        assert names(store, topic) == ["attached", "used"]
    record = next(row for row in store.reports.list_audit_records() if row.action == "subscription expired")
    assert (record.target, record.effects["unacknowledged"]) == ("orders left", 3)
    with pytest.raises(SubscriptionNotFound):
        store.reports.subscription_stats(topic, "left")


def test_a_subscription_that_no_consumer_has_joined_goes_by_its_creation(
    store: Store, topic: str, clock: ManualClock
) -> None:
    store.admin.subscriptions.create_subscription(topic, "new")
    clock.advance(3599)
    assert trim(store, topic) == []
    clock.advance(2)
    assert trim(store, topic) == ["new"]


def test_an_operator_or_a_stream_keeps_a_subscription(store: Store, topic: str, clock: ManualClock) -> None:
    """A Spark stream acknowledges without a consumer."""
    store.admin.subscriptions.create_subscription(topic, "stream", initial_position=EARLIEST)
    store.admin.subscriptions.create_subscription(topic, "sought", initial_position=EARLIEST)
    position = send(store, topic, 2)[0]
    for _ in range(3):
        clock.advance(1800)
        store.admin.acknowledgements.acknowledge_through(topic, "stream", position)
        store.admin.subscriptions.seek_subscription(topic, "sought", EARLIEST)
        assert trim(store, topic) == []


def test_pending_acknowledgements_keep_a_subscription(store: Store, topic: str, clock: ManualClock) -> None:
    send(store, topic, 1)
    txn = store.begin_transaction(timeout=36_000)
    acknowledge(store, topic, "a", 1, txn)
    clock.advance(3601)
    assert trim(store, topic) == []
    store.commit_transaction(txn)
    assert trim(store, topic) == ["a"]


def test_an_unknown_time_runs_from_the_first_look(store: Store, topic: str, clock: ManualClock) -> None:
    """Of a subscription that an earlier release has made."""
    store.admin.subscriptions.create_subscription(topic, "old")

    def forget(batch: WriteBatch) -> None:
        subscription = subscriptions.get(batch, topics.get(batch, topic), "old")
        cursors.load(batch, subscription.subscription_id).vacated_ms = None

    store.connection.write(forget)
    clock.advance(86_400)
    assert trim(store, topic) == []
    clock.advance(3601)
    assert trim(store, topic) == ["old"]


def test_a_write_deletes_on_its_way_and_gc_as_its_dry_run_says(
    store: Store, topic: str, clock: ManualClock
) -> None:
    for name in ("a", "b"):
        store.admin.subscriptions.create_subscription(topic, name)
    clock.advance(3601)
    forecast = store.maintenance.collect_garbage(dry_run=True).collected
    assert (forecast.subscriptions_expired, names(store, topic)) == (2, ["a", "b"])
    assert store.maintenance.collect_garbage().collected.subscriptions_expired == 2
    store.admin.subscriptions.create_subscription(topic, "c")
    clock.advance(3601)
    for _ in range(3):
        store.begin_transaction()
    assert names(store, topic) == []


def test_nothing_expires_after_the_wall_clock_was_moved(store: Store, topic: str, clock: ManualClock) -> None:
    store.admin.subscriptions.create_subscription(topic, "a")
    clock.wall_now_ns += 86_400 * 1_000_000_000
    assert trim(store, topic) == []


def test_a_restored_store_starts_anew(
    store: Store, topic: str, clock: ManualClock, path: str, tmp_path: Path
) -> None:
    """Nobody could come for a subscription of the copy before it was there."""
    store.admin.subscriptions.create_subscription(topic, "a")
    backup, copy = str(tmp_path / "backup"), str(tmp_path / "copy")
    store.maintenance.backup_store(backup)
    Store.restore(backup, copy)
    with Store.open(copy) as restored:
        assert restored.admin.topics.trim_topic(topic).effects.subscriptions_expired == []
        assert names(restored, topic) == ["a"]
    check_whole(path, clock)


def test_a_run_looks_at_all_subscriptions_in_steps(
    store: Store, topic: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each store transaction looks at a few; the dry run finds the same."""
    create_subscriptions(store, topic, 9)
    clock.advance(3000)
    with store.subscribe(topic, "s4"), store.subscribe(topic, "s8"):
        pass
    clock.advance(601)
    monkeypatch.setattr(subscription_expiry, "EXPIRY_SUBSCRIPTIONS", 2)
    monkeypatch.setattr(subscription_expiry.step, "__defaults__", ("", 2))
    old = ["s0", "s1", "s2", "s3", "s5", "s6", "s7"]
    dry = store.admin.topics.trim_topic(topic, dry_run=True)
    assert (dry.effects.subscriptions_expired, len(names(store, topic))) == (old, 9)
    assert trim(store, topic) == old
    clock.advance(3601)
    assert store.maintenance.collect_garbage().collected.subscriptions_expired == 2


def test_a_step_does_not_look_at_every_subscription(store: Store, topic: str) -> None:
    """The operations of the longest store transaction are as many with ten times the subscriptions."""
    most = []
    for number in (400, 4000):
        store.create_topic(f"t{number}")
        store.admin.topics.set_retention(f"t{number}", expire_after_ms=HOUR_MS)
        create_subscriptions(store, f"t{number}", number)
        with counted(store) as operations:
            assert trim(store, f"t{number}") == []
        most.append(operations.most)
    assert most[1] < 1.2 * most[0]
