"""`python -m benchmarks.gate [--in-flight N ...] [--batch N ...] [--dir DIR]`: the hold of the writer gate by changes.

Messages are sent one by one, so each is an entry of its own, or in batches, which are an entry each. All are in flight
at a consumer, pending in a transaction, or given back. The directory is on a memory file system by default, where a
flush costs nothing: the goal, 100 ms, does not count the flush. Operations of LMDB under the gate are counted in a
second run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from time import perf_counter, sleep, thread_time, time
from typing import Any

from storage import EARLIEST, AccessMode, Consumer, IsolationLevel, Store, SubscriptionType, TxnID
from storage.disk.schema import DELAYED
from storage.process.writer_gate import WriterGate
from tests.storage.lmdb_operations import counted
from tests.storage.many_messages import (
    KEYS,
    create_subscriptions,
    write_delayed,
    write_in_turn,
    write_messages,
)

_TOPIC, _NAME = "t", "a"
_GOAL_MS = 100.0


class Scene:
    """A store with `number` messages in flight, `size` of them in each entry."""

    def __init__(self, store: Store, number: int, size: int, type_: SubscriptionType) -> None:
        self.store = store
        self.number = number
        self.size = size
        self.type = type_
        self.consumer = self.attach()
        self.txn: TxnID | None = None

    def attach(self) -> Consumer:
        return self.store.subscribe(
            _TOPIC, _NAME, subscription_type=self.type, initial_position=EARLIEST, receiver_queue_size=1000
        )

    def receive(self) -> None:
        """Have all messages in flight at the consumer."""
        left = self.number
        while left > 0:
            left -= len(self.consumer.receive_batch(1000, timeout=0))

    def acknowledge(self, txn: TxnID | None, every: int = 1) -> None:
        """Receive all messages, and acknowledge each `every`-th, a window at a time."""
        left = self.number
        while left > 0:
            batch = self.consumer.receive_batch(1000, timeout=0)
            left -= len(batch)
            self.consumer.acknowledge([batch[number] for number in range(0, len(batch), every)], txn=txn)

    def pend(self, every: int = 1) -> TxnID:
        """A transaction with a message on the topic, and an acknowledgement of each `every`-th message."""
        txn = self.txn = self.store.begin_transaction(timeout=3600)
        producer = self.store.create_producer(_TOPIC, access_mode=AccessMode.EXCLUSIVE)
        producer.send(b"x", txn=txn)
        self.acknowledge(txn, every)
        return txn


Change = Callable[[], object]
Scenario = Callable[[Scene], Change]


def _abort_in_flight(scene: Scene) -> Change:
    scene.receive()
    txn = scene.store.begin_transaction(timeout=3600)
    scene.store.create_producer(_TOPIC).send(b"x", txn=txn)
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
    return lambda: scene.store.admin.producers.fence_producers(_TOPIC)


def _evict(scene: Scene) -> Change:
    scene.receive()
    return lambda: scene.store.admin.subscriptions.evict_consumers(_TOPIC, _NAME)


def _close(scene: Scene) -> Change:
    scene.receive()
    return scene.consumer.close


def _seek(scene: Scene) -> Change:
    scene.receive()
    return lambda: scene.store.admin.subscriptions.seek_subscription(_TOPIC, _NAME, EARLIEST)


def _clear_backlog(scene: Scene) -> Change:
    scene.receive()
    return lambda: scene.store.admin.subscriptions.clear_backlog(_TOPIC, _NAME)


def _clear_backlog_dry(scene: Scene) -> Change:
    return lambda: scene.store.admin.subscriptions.clear_backlog(_TOPIC, _NAME, dry_run=True)


def _delete_half(scene: Scene) -> Change:
    scene.acknowledge(None, every=2)
    return lambda: scene.store.admin.subscriptions.delete_subscription(_TOPIC, _NAME, force=True)


def _expire(scene: Scene) -> Change:
    scene.acknowledge(None, every=2)
    scene.consumer.close()
    scene.store.admin.topics.set_retention(_TOPIC, expire_after_ms=1000)
    sleep(1.1)
    return lambda: scene.store.admin.topics.trim_topic(_TOPIC)


def _let_go(scene: Scene) -> Change:
    """Let everything go for a hard limit."""
    scene.store.admin.topics.set_retention(_TOPIC, time_ms=1, hard="trim")
    return lambda: scene.store.admin.topics.trim_topic(_TOPIC)


def _let_go_pending(scene: Scene) -> Change:
    scene.pend()
    return _let_go(scene)


def _lose_rest(txns: int) -> Scenario:
    """Let the first ledger go, of which transactions in turn have the rest of the log."""

    def prepare(scene: Scene) -> Change:
        store = scene.store
        store.create_topic("rest", ledger_entries_max=1000)
        store.admin.subscriptions.create_subscription("rest", _NAME, initial_position=EARLIEST)
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
    store.admin.subscriptions.create_subscription("aborted", _NAME, initial_position=EARLIEST)
    txn = store.begin_transaction(timeout=3600)
    write_in_turn(store, "aborted", [txn], scene.number // scene.size, scene.size)
    store.admin.transactions.abort_transaction(txn)
    level = IsolationLevel.READ_UNCOMMITTED
    return lambda: store.admin.subscriptions.update_subscription(
        "aborted", _NAME, subscription_isolation_level=level
    )


def _unsubscribe(scene: Scene) -> Change:
    scene.receive()
    return scene.consumer.unsubscribe


def _second_consumer(scene: Scene) -> Consumer:
    """A consumer that has polled once, in vain, and so knows the keys of what is in flight at the first."""
    scene.receive()
    other = scene.attach()
    other.receive_batch(10, timeout=0)
    return other


def _poll(scene: Scene, key: str = "0") -> Change:
    other = _second_consumer(scene)
    scene.store.create_producer(_TOPIC).send(b"x", key=key)
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
    return lambda: admin.negative_acknowledge_messages(_TOPIC, _NAME, ids[:10_000], delay=60)


def _subscribe(scene: Scene, topic: str, window: int = 1000, **options: Any) -> Consumer:
    """A consumer of a second topic, of the scene's type."""
    return scene.store.subscribe(
        topic,
        _NAME,
        subscription_type=scene.type,
        initial_position=EARLIEST,
        receiver_queue_size=window,
        **options,
    )


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
    consumer = _subscribe(scene, "u")
    return lambda: consumer.receive_batch(10, timeout=0)


def _hold_back(scene: Scene) -> Change:
    """All messages but the last have the key of a message in flight at a different consumer."""
    store = scene.store
    store.create_topic("u")
    store.create_producer("u").send(b"x", key="0")
    holder, consumer = _subscribe(scene, "u", 1), _subscribe(scene, "u")
    holder.receive_batch(1, timeout=0)
    write_messages(store, "u", min(scene.number, 90_000), keys=1, size=scene.size)
    store.create_producer("u").send(b"x", key="free")
    return lambda: consumer.receive_batch(10, timeout=0)


def _dead_letters(scene: Scene) -> Change:
    """All messages were delivered as often as they may be."""
    store = scene.store
    store.create_topic("u")
    write_messages(store, "u", scene.number, size=scene.size)
    with _subscribe(scene, "u", max_redeliver_count=0, dead_letter_topic="d") as first:
        left = scene.number
        while left > 0:
            left -= len(first.receive_batch(1000, timeout=0))
    consumer = _subscribe(scene, "u", max_redeliver_count=0, dead_letter_topic="d")
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
    consumer = _subscribe(scene, "u", on_open="skip")
    consumer.receive_batch(10, timeout=0)
    return consumer, txn


def _poll_behind(scene: Scene) -> Change:
    consumer, _ = _behind(scene)
    scene.store.create_producer("u").send(b"x", key="free")
    return lambda: consumer.receive_batch(10, timeout=0)


def _seek_behind(scene: Scene) -> Change:
    _behind(scene)
    return lambda: scene.store.admin.subscriptions.seek_subscription("u", _NAME, EARLIEST)


def _receive_behind(scene: Scene) -> Change:
    consumer, txn = _behind(scene)
    scene.store.admin.transactions.abort_transaction(txn, force=True)
    return lambda: consumer.receive_batch(1000, timeout=0)


def _poll_skipping(scene: Scene) -> Change:
    """All messages are in flight at a different consumer of a subscription with on-open skip."""
    store = scene.store
    store.create_topic("u")
    write_messages(store, "u", scene.number, size=scene.size)
    holder, consumer = _subscribe(scene, "u", on_open="skip"), _subscribe(scene, "u", on_open="skip")
    left = scene.number
    while left > 0:
        left -= len(holder.receive_batch(1000, timeout=0))
    consumer.receive_batch(10, timeout=0)
    store.create_producer("u").send(b"x", key="free")
    return lambda: consumer.receive_batch(10, timeout=0)


def _all_delayed(scene: Scene, level: IsolationLevel = IsolationLevel.READ_COMMITTED) -> Consumer:
    """A consumer has passed as many delayed messages as the scene has entries, behind one that is in flight."""
    store, later_ms = scene.store, int(time() * 1000) + 86_400_000
    store.create_topic("u")
    store.create_producer("u").send(b"x")
    write_delayed(store, "u", scene.number // scene.size, later_ms)
    consumer = _subscribe(scene, "u", subscription_isolation_level=level)
    while len(consumer.receive_batch(10, timeout=0)) or _passed(store) < scene.number // scene.size:
        pass
    return consumer


def _passed(store: Store) -> int:
    """The delayed messages that dispatch has passed."""
    with store.connection.view() as view:
        return view.count(DELAYED)


def _seek_delayed(scene: Scene) -> Change:
    _all_delayed(scene)
    return lambda: scene.store.admin.subscriptions.seek_subscription("u", _NAME, EARLIEST)


def _change_type_delayed(scene: Scene) -> Change:
    _all_delayed(scene).close()
    return lambda: scene.store.admin.subscriptions.update_subscription(
        "u", _NAME, subscription_type=SubscriptionType.EXCLUSIVE
    )


def _clear_backlog_delayed(scene: Scene) -> Change:
    _all_delayed(scene)
    return lambda: scene.store.admin.subscriptions.clear_backlog("u", _NAME)


def _abort_before_delayed(scene: Scene) -> Change:
    """Dispatch must examine again what lies behind a message whose acknowledgement is aborted."""
    store = scene.store
    consumer = _all_delayed(scene, IsolationLevel.READ_UNCOMMITTED)
    consumer.close()
    store.admin.subscriptions.update_subscription(
        "u", _NAME, subscription_isolation_level=IsolationLevel.READ_COMMITTED
    )
    consumer = _subscribe(scene, "u")
    messages = list(consumer.receive_batch(1, timeout=0))
    while _passed(store) < scene.number // scene.size:
        consumer.receive_batch(10, timeout=0)
    txn = store.begin_transaction(timeout=3600)
    consumer.acknowledge(messages, txn=txn)
    return lambda: store.admin.transactions.abort_transaction(txn, force=True)


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


SHARED, EXCLUSIVE, KEY_SHARED = (
    SubscriptionType.SHARED,
    SubscriptionType.EXCLUSIVE,
    SubscriptionType.KEY_SHARED,
)

SCENARIOS: dict[str, tuple[SubscriptionType, Scenario]] = {
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
    "delete subscription, half acknowledged": (SHARED, _delete_half),
    "expire subscription, half acknowledged": (SHARED, _expire),
    "hard limit": (SHARED, _let_go),
    "hard limit, all pending": (SHARED, _let_go_pending),
    "hard limit, rest of a transaction": (SHARED, _lose_rest(1)),
    "hard limit, rest of two in turn": (SHARED, _lose_rest(2)),
    "change of level, all aborted": (SHARED, _change_level),
    "receive 1,000 again": (SHARED, _receive_again),
    "receive 1,000 again, half acknowledged": (SHARED, _receive_after_half),
    "acknowledge 10,000, last first": (SHARED, _acknowledge_many),
    "give back 10,000": (SHARED, _give_back_many),
    "empty poll, Key_Shared": (KEY_SHARED, _poll),
    "receive 1 by key, Key_Shared": (KEY_SHARED, _receive_by_key),
    "close, Key_Shared": (KEY_SHARED, _close),
    "pass aborted entries": (SHARED, _pass_aborted),
    "hold back by key, Key_Shared": (KEY_SHARED, _hold_back),
    "dead letters": (SHARED, _dead_letters),
    "receive 1 by key, on-open skip": (KEY_SHARED, _poll_skipping),
    "receive 1 beside all behind, on-open skip": (KEY_SHARED, _poll_behind),
    "seek, all behind, on-open skip": (KEY_SHARED, _seek_behind),
    "receive what was behind, on-open skip": (KEY_SHARED, _receive_behind),
    "seek, all delayed": (SHARED, _seek_delayed),
    "change of type, all delayed": (SHARED, _change_type_delayed),
    "clear-backlog, all delayed": (SHARED, _clear_backlog_delayed),
    "abort before all delayed": (SHARED, _abort_before_delayed),
    "expire none of many subscriptions": (SHARED, _expire_none),
    "hard limit, many subscriptions": (SHARED, _let_go_of_many),
}


class Held:
    """The longest hold of the gate in ms: by the clock, and in processor time, which does not depend on other load."""

    def __init__(self) -> None:
        self.longest_ms = self.longest_cpu_ms = 0.0


@contextmanager
def _timed() -> Iterator[Held]:
    held, enter, leave = Held(), WriterGate.enter, WriterGate.leave
    began: list[tuple[float, float]] = []

    def timed_enter(gate: WriterGate, *args: Any) -> None:
        enter(gate, *args)
        began.append((perf_counter(), thread_time()))

    def timed_leave(gate: WriterGate) -> None:
        leave(gate)
        if began:
            clock, cpu = began.pop()
            held.longest_ms = max(held.longest_ms, (perf_counter() - clock) * 1000)
            held.longest_cpu_ms = max(held.longest_cpu_ms, (thread_time() - cpu) * 1000)

    WriterGate.enter, WriterGate.leave = timed_enter, timed_leave  # type: ignore[method-assign,assignment]
    try:
        yield held
    finally:
        WriterGate.enter, WriterGate.leave = enter, leave  # type: ignore[method-assign]


def _write_messages(path: Path, number: int, size: int) -> None:
    Store.create(str(path))
    with Store.open(str(path)) as store:
        store.create_topic(_TOPIC)
        write_messages(store, _TOPIC, number, size=size)


def measure(path: Path, name: str, number: int, size: int) -> tuple[float, Held, int]:
    """Run a scenario on a copy of a store: processor time of the call in ms, hold of the gate, operations."""
    type_, scenario = SCENARIOS[name]
    scene_path = path.with_name("scene")
    shutil.copytree(path, scene_path)
    try:
        with Store.open(str(scene_path)) as store:
            change = scenario(Scene(store, number, size, type_))
            with counted(store) as operations, _timed() as held:
                began = thread_time()
                change()
                call_ms = (thread_time() - began) * 1000
            return call_ms, held, operations.total
    finally:
        shutil.rmtree(scene_path)


def main(arguments: list[str] | None = None) -> int:
    """Measure; return 1 if a hold was longer than the goal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__.split("\n")[0])
    parser.add_argument("--in-flight", type=int, nargs="+", default=[20_000, 100_000], metavar="N")
    parser.add_argument(
        "--batch", type=int, nargs="+", default=[1, 10, 100], metavar="N", help="messages of an entry"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios with this text in their name")
    parser.add_argument("--dir", type=Path, default=Path("/dev/shm"), metavar="DIR")
    options, is_over = parser.parse_args(arguments), False
    print(
        f"{'change':44} {'entries':>9}  of {'call cpu':>9} {'gate cpu':>9} {'gate ms':>9} {'operations':>10}"
    )
    for size, entries in product(options.batch, options.in_flight):
        with tempfile.TemporaryDirectory(prefix="txnctl-gate-", dir=options.dir) as directory:
            path = Path(directory) / "store"
            _write_messages(path, entries * size, size)
            for name in SCENARIOS:
                if options.only in name:
                    call_ms, held, operations = measure(path, name, entries * size, size)
                    is_over = is_over or held.longest_cpu_ms > _GOAL_MS
                    print(
                        f"{name:44} {entries:9,} {size:3} {call_ms:9.1f} {held.longest_cpu_ms:9.1f} "
                        f"{held.longest_ms:9.1f} {operations:10,}",
                        flush=True,
                    )
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
