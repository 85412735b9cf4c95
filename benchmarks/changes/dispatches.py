"""Dispatches beside everything in flight."""

from __future__ import annotations

from benchmarks.changes.scene import KEY_SHARED, NAME, SHARED, TOPIC, Change, Scenarios, Scene, subscribe
from storage import EARLIEST, Consumer, TxnID
from tests.storage.many_messages import KEYS, write_messages


def _second_consumer(scene: Scene) -> Consumer:
    """A consumer that has polled once, in vain, and so knows the keys of what is in flight at the first."""
    scene.receive()
    other = scene.attach()
    other.receive_batch(10, timeout=0)
    return other


def _poll(scene: Scene, key: str = "0") -> Change:
    other = _second_consumer(scene)
    scene.store.create_producer(TOPIC).send(b"x", key=key)
    return lambda: other.receive_batch(10, timeout=0)


def _receive_by_key(scene: Scene) -> Change:
    return _poll(scene, "free")


def _receive_again(scene: Scene) -> Change:
    scene.receive()
    scene.consumer.close()
    other = scene.attach()
    return lambda: other.receive_batch(1000, timeout=0)


def _receive_after_half(scene: Scene) -> Change:
    scene.acknowledge(None, every=2)
    scene.consumer.close()
    other = scene.attach()
    return lambda: other.receive_batch(1000, timeout=0)


def _pass_aborted(scene: Scene) -> Change:
    """Aborted entries lie between a consumer and the one message that it gets."""
    store = scene.store
    store.create_topic("u")
    txn, producer = store.begin_transaction(timeout=3600), store.create_producer("u")
    for begin in range(0, scene.number, 1000):
        for _ in range(begin, begin + 1000, scene.size):
            producer.send_batch([b"x"] * scene.size, txn=txn)
    store.admin.transactions.abort_transaction(txn, force=True)
    producer.send(b"x")
    consumer = subscribe(scene, "u")
    return lambda: consumer.receive_batch(10, timeout=0)


def _hold_back(scene: Scene) -> Change:
    """All messages but the last have the key of a message in flight at a different consumer."""
    store = scene.store
    store.create_topic("u")
    store.create_producer("u").send(b"x", key="0")
    holder, consumer = subscribe(scene, "u", 1), subscribe(scene, "u")
    holder.receive_batch(1, timeout=0)
    write_messages(store, "u", min(scene.number, 90_000), keys=1, size=scene.size)
    store.create_producer("u").send(b"x", key="free")
    return lambda: consumer.receive_batch(10, timeout=0)


def _dead_letters(scene: Scene) -> Change:
    """All messages were delivered as often as they may be."""
    store = scene.store
    store.create_topic("u")
    write_messages(store, "u", scene.number, size=scene.size)
    with subscribe(scene, "u", max_redeliver_count=0, dead_letter_topic="d") as first:
        left = scene.number
        while left > 0:
            left -= len(first.receive_batch(1000, timeout=0))
    consumer = subscribe(scene, "u", max_redeliver_count=0, dead_letter_topic="d")
    return lambda: consumer.receive_batch(10, timeout=0)


def _behind(scene: Scene) -> tuple[Consumer, TxnID]:
    """An open transaction has a message of each key, behind which a consumer with on-open skip holds all messages."""
    store = scene.store
    store.create_topic("u")
    txn = store.begin_transaction(timeout=3600)
    keys = [b"%d" % key for key in range(KEYS)]
    producer = store.create_producer("u")
    producer.send_batch(keys, keys=keys, txn=txn)
    producer.flush()
    write_messages(store, "u", scene.number, size=scene.size)
    consumer = subscribe(scene, "u", on_open="skip")
    consumer.receive_batch(10, timeout=0)
    return consumer, txn


def _poll_behind(scene: Scene) -> Change:
    consumer, _ = _behind(scene)
    scene.store.create_producer("u").send(b"x", key="free")
    return lambda: consumer.receive_batch(10, timeout=0)


def _seek_behind(scene: Scene) -> Change:
    _behind(scene)
    return lambda: scene.store.admin.subscriptions.seek_subscription("u", NAME, EARLIEST)


def _receive_behind(scene: Scene) -> Change:
    consumer, txn = _behind(scene)
    scene.store.admin.transactions.abort_transaction(txn, force=True)
    return lambda: consumer.receive_batch(1000, timeout=0)


def _poll_skipping(scene: Scene) -> Change:
    """All messages are in flight at a different consumer of a subscription with on-open skip."""
    store = scene.store
    store.create_topic("u")
    write_messages(store, "u", scene.number, size=scene.size)
    holder, consumer = subscribe(scene, "u", on_open="skip"), subscribe(scene, "u", on_open="skip")
    left = scene.number
    while left > 0:
        left -= len(holder.receive_batch(1000, timeout=0))
    consumer.receive_batch(10, timeout=0)
    store.create_producer("u").send(b"x", key="free")
    return lambda: consumer.receive_batch(10, timeout=0)


SCENARIOS: Scenarios = {
    "receive 1,000 again": (SHARED, _receive_again),
    "receive 1,000 again, half acknowledged": (SHARED, _receive_after_half),
    "empty poll, Key_Shared": (KEY_SHARED, _poll),
    "receive 1 by key, Key_Shared": (KEY_SHARED, _receive_by_key),
    "pass aborted entries": (SHARED, _pass_aborted),
    "hold back by key, Key_Shared": (KEY_SHARED, _hold_back),
    "dead letters": (SHARED, _dead_letters),
    "receive 1 by key, on-open skip": (KEY_SHARED, _poll_skipping),
    "receive 1 beside all behind, on-open skip": (KEY_SHARED, _poll_behind),
    "seek, all behind, on-open skip": (KEY_SHARED, _seek_behind),
    "receive what was behind, on-open skip": (KEY_SHARED, _receive_behind),
}
