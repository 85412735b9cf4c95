"""Ends of transactions, consumers and backlogs with everything in flight."""

from __future__ import annotations

from benchmarks.changes.scene import EXCLUSIVE, KEY_SHARED, NAME, SHARED, TOPIC, Change, Scenarios, Scene
from storage import EARLIEST


def _abort_in_flight(scene: Scene) -> Change:
    scene.receive()
    txn = scene.store.begin_transaction(timeout=3600)
    scene.store.create_producer(TOPIC).send(b"x", txn=txn)
    return lambda: scene.store.admin.transactions.abort_transaction(txn, force=True)


def _abort_pending(scene: Scene) -> Change:
    txn = scene.pend()
    return lambda: scene.store.admin.transactions.abort_transaction(txn, force=True)


def _abort_half(scene: Scene) -> Change:
    txn = scene.pend(every=2)
    return lambda: scene.store.admin.transactions.abort_transaction(txn, force=True)


def _commit_pending(scene: Scene) -> Change:
    txn = scene.pend()
    return lambda: scene.store.commit_transaction(txn)


def _commit_half(scene: Scene) -> Change:
    txn = scene.pend(every=2)
    return lambda: scene.store.commit_transaction(txn)


def _fence(scene: Scene) -> Change:
    scene.pend()
    return lambda: scene.store.admin.producers.fence_producers(TOPIC)


def _evict(scene: Scene) -> Change:
    scene.receive()
    return lambda: scene.store.admin.subscriptions.evict_consumers(TOPIC, NAME)


def _close(scene: Scene) -> Change:
    scene.receive()
    return scene.consumer.close


def _seek(scene: Scene) -> Change:
    scene.receive()
    return lambda: scene.store.admin.subscriptions.seek_subscription(TOPIC, NAME, EARLIEST)


def _clear_backlog(scene: Scene) -> Change:
    scene.receive()
    return lambda: scene.store.admin.subscriptions.clear_backlog(TOPIC, NAME)


def _clear_backlog_dry(scene: Scene) -> Change:
    return lambda: scene.store.admin.subscriptions.clear_backlog(TOPIC, NAME, dry_run=True)


def _unsubscribe(scene: Scene) -> Change:
    scene.receive()
    return scene.consumer.unsubscribe


def _acknowledge_many(scene: Scene) -> Change:
    batches = []
    left = scene.number
    while left > 0:
        batches.append(scene.consumer.receive_batch(1000, timeout=0))
        left -= len(batches[-1])
    messages = [message for batch in batches[:10] for message in batch]
    return lambda: scene.consumer.acknowledge(messages[::-1])


def _give_back_many(scene: Scene) -> Change:
    ids = []
    left = scene.number
    while left > 0:
        batch = scene.consumer.receive_batch(1000, timeout=0)
        ids += [message.message_id for message in batch]
        left -= len(batch)
    admin = scene.store.admin.acknowledgements
    return lambda: admin.negative_acknowledge_messages(TOPIC, NAME, ids[:10_000], delay=60)


SCENARIOS: Scenarios = {
    "abort, all in flight": (SHARED, _abort_in_flight),
    "abort, all pending": (SHARED, _abort_pending),
    "abort, all pending, Exclusive": (EXCLUSIVE, _abort_pending),
    "abort, every second pending": (SHARED, _abort_half),
    "commit, all pending": (SHARED, _commit_pending),
    "commit, every second pending": (SHARED, _commit_half),
    "fence, all pending": (SHARED, _fence),
    "evict": (SHARED, _evict),
    "Consumer.close": (SHARED, _close),
    "seek": (SHARED, _seek),
    "clear-backlog, a step": (SHARED, _clear_backlog),
    "clear-backlog, dry": (SHARED, _clear_backlog_dry),
    "unsubscribe": (SHARED, _unsubscribe),
    "acknowledge 10,000, last first": (SHARED, _acknowledge_many),
    "give back 10,000": (SHARED, _give_back_many),
    "close, Key_Shared": (KEY_SHARED, _close),
}
