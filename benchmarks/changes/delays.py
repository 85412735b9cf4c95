"""Changes of a subscription of which everything is delayed."""

from __future__ import annotations

from time import time

from benchmarks.changes.scene import NAME, SHARED, Change, Scenarios, Scene, subscribe
from storage import EARLIEST, Consumer, IsolationLevel, Store, SubscriptionType
from storage.disk.schema import DELAYED
from tests.storage.many_messages import write_delayed


def _all_delayed(scene: Scene, level: IsolationLevel = IsolationLevel.READ_COMMITTED) -> Consumer:
    """A consumer has passed as many delayed messages as the scene has entries, behind one that is in flight."""
    store, later_ms = scene.store, int(time() * 1000) + 86_400_000
    store.create_topic("u")
    store.create_producer("u").send(b"x")
    write_delayed(store, "u", scene.number // scene.size, later_ms)
    consumer = subscribe(scene, "u", subscription_isolation_level=level)
    while len(consumer.receive_batch(10, timeout=0)) or _passed(store) < scene.number // scene.size:
        pass
    return consumer


def _passed(store: Store) -> int:
    """The delayed messages that dispatch has passed."""
    with store.connection.view() as view:
        return view.count(DELAYED)


def _seek_delayed(scene: Scene) -> Change:
    _all_delayed(scene)
    return lambda: scene.store.admin.subscriptions.seek_subscription("u", NAME, EARLIEST)


def _change_type_delayed(scene: Scene) -> Change:
    _all_delayed(scene).close()
    return lambda: scene.store.admin.subscriptions.update_subscription(
        "u", NAME, subscription_type=SubscriptionType.EXCLUSIVE
    )


def _clear_backlog_delayed(scene: Scene) -> Change:
    _all_delayed(scene)
    return lambda: scene.store.admin.subscriptions.clear_backlog("u", NAME)


def _abort_before_delayed(scene: Scene) -> Change:
    """Dispatch must examine again what lies behind a message whose acknowledgement is aborted."""
    store = scene.store
    consumer = _all_delayed(scene, IsolationLevel.READ_UNCOMMITTED)
    consumer.close()
    store.admin.subscriptions.update_subscription(
        "u", NAME, subscription_isolation_level=IsolationLevel.READ_COMMITTED
    )
    consumer = subscribe(scene, "u")
    messages = list(consumer.receive_batch(1, timeout=0))
    while _passed(store) < scene.number // scene.size:
        consumer.receive_batch(10, timeout=0)
    txn = store.begin_transaction(timeout=3600)
    consumer.acknowledge(messages, txn=txn)
    return lambda: store.admin.transactions.abort_transaction(txn, force=True)


SCENARIOS: Scenarios = {
    "seek, all delayed": (SHARED, _seek_delayed),
    "change of type, all delayed": (SHARED, _change_type_delayed),
    "clear-backlog, all delayed": (SHARED, _clear_backlog_delayed),
    "abort before all delayed": (SHARED, _abort_before_delayed),
}
