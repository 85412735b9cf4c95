"""Deletions, expiry, and limits that let go of what is not acknowledged."""

from __future__ import annotations

from time import sleep

from benchmarks.changes.scene import NAME, SHARED, TOPIC, Change, Scenario, Scenarios, Scene
from storage import EARLIEST, IsolationLevel
from tests.storage.many_messages import create_subscriptions, write_in_turn


def _delete_half(scene: Scene) -> Change:
    scene.acknowledge(None, every=2)
    return lambda: scene.store.admin.subscriptions.delete_subscription(TOPIC, NAME, force=True)


def _expire(scene: Scene) -> Change:
    scene.acknowledge(None, every=2)
    scene.consumer.close()
    scene.store.admin.topics.set_retention(TOPIC, expire_after_ms=1000)
    sleep(1.1)
    return lambda: scene.store.admin.topics.trim_topic(TOPIC)


def _let_go(scene: Scene) -> Change:
    """Let everything go for a hard limit."""
    scene.store.admin.topics.set_retention(TOPIC, time_ms=1, hard="trim")
    return lambda: scene.store.admin.topics.trim_topic(TOPIC)


def _let_go_pending(scene: Scene) -> Change:
    scene.pend()
    return _let_go(scene)


def _lose_rest(txns: int) -> Scenario:
    """Let the first ledger go, of which transactions in turn have the rest of the log."""

    def prepare(scene: Scene) -> Change:
        store = scene.store
        store.create_topic("rest", ledger_entries_max=1000)
        store.admin.subscriptions.create_subscription("rest", NAME, initial_position=EARLIEST)
        begun = [store.begin_transaction(timeout=3600) for _ in range(txns)]
        write_in_turn(store, "rest", begun, scene.number // scene.size, scene.size)
        for txn in begun:
            store.commit_transaction(txn)
        store.admin.topics.set_retention("rest", time_ms=1, hard="trim")
        return lambda: store.admin.topics.trim_topic("rest")

    return prepare


def _change_level(scene: Scene) -> Change:
    store = scene.store
    store.create_topic("aborted")
    store.admin.subscriptions.create_subscription("aborted", NAME, initial_position=EARLIEST)
    txn = store.begin_transaction(timeout=3600)
    write_in_turn(store, "aborted", [txn], scene.number // scene.size, scene.size)
    store.admin.transactions.abort_transaction(txn)
    level = IsolationLevel.READ_UNCOMMITTED
    return lambda: store.admin.subscriptions.update_subscription(
        "aborted", NAME, subscription_isolation_level=level
    )


def _crowd(scene: Scene) -> None:
    """A topic of two ledgers with a tenth as many subscriptions as the scene has entries. None has consumed."""
    store = scene.store
    store.create_topic("u", ledger_entries_max=2)
    for _ in range(3):
        store.create_producer("u").send(b"x")
    create_subscriptions(store, "u", scene.number // scene.size // 10)


def _expire_none(scene: Scene) -> Change:
    """No subscription is old enough to go."""
    _crowd(scene)
    scene.store.admin.topics.set_retention("u", expire_after_ms=3_600_000)
    return lambda: scene.store.admin.topics.trim_topic("u")


def _let_go_of_many(scene: Scene) -> Change:
    """Each subscription loses a message, and the audit trail names it."""
    _crowd(scene)
    scene.store.admin.topics.set_retention("u", time_ms=1, hard="trim")
    return lambda: scene.store.admin.topics.trim_topic("u")


SCENARIOS: Scenarios = {
    "delete subscription, half acknowledged": (SHARED, _delete_half),
    "expire subscription, half acknowledged": (SHARED, _expire),
    "hard limit": (SHARED, _let_go),
    "hard limit, all pending": (SHARED, _let_go_pending),
    "hard limit, rest of a transaction": (SHARED, _lose_rest(1)),
    "hard limit, rest of two in turn": (SHARED, _lose_rest(2)),
    "change of level, all aborted": (SHARED, _change_level),
    "expire none of many subscriptions": (SHARED, _expire_none),
    "hard limit, many subscriptions": (SHARED, _let_go_of_many),
}

OF_MANY_SUBSCRIPTIONS = ("expire none of many subscriptions", "hard limit, many subscriptions")
"""Those of a topic with many subscriptions, which have no message in flight."""
