"""I3: the cost of one open transaction for the delivery of committed messages behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.bench import Bench
from benchmarks.bursts import Operation, interleave
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC
from benchmarks.payload import Payload
from benchmarks.prepared import prepared
from benchmarks.report import Comparison, compare
from storage import EARLIEST, Consumer, IsolationLevel, OnOpen, Store, SubscriptionType

_COUNT = 1000
_BATCHES = 10
_WINDOW = _COUNT * _BATCHES
_WARMUP = 1
_TIMEOUT_S = 24 * 3600.0

_KEYS = [b"%d" % number for number in range(_COUNT)]
_KEYS_OPEN = 10
"""The keys, of a thousand, in the open transaction: one message in a hundred waits for the transaction."""

_BEHIND_ROUNDS_SHARE = 10
"""Key_Shared checks the key of each message, so a tenth of the batches stands behind the open transaction there."""


def delivery_with_one_open(bench: Bench) -> Iterator[Comparison]:
    """I3. Receive and acknowledge ten batches, in topics whose first message is in a transaction that stays open.

    Before the clock runs, a million messages behind the transaction are delivered and acknowledged. The peers are the
    same subscriptions of topics without open transactions. Blocking READ_COMMITTED has no figure: nothing is delivered.
    """
    skip, uncommitted, keys = targets_of("I3")
    with ExitStack() as opened:
        takes: dict[str, Operation] = {}
        for name, is_open, mode in (
            ("none", False, {"subscription_type": SubscriptionType.SHARED}),
            ("skip", True, {"subscription_type": SubscriptionType.SHARED, "on_open": OnOpen.SKIP}),
            (
                "uncommitted",
                True,
                {
                    "subscription_type": SubscriptionType.SHARED,
                    "subscription_isolation_level": IsolationLevel.READ_UNCOMMITTED,
                },
            ),
            ("none, keys", False, {"subscription_type": SubscriptionType.KEY_SHARED}),
            ("skip, keys", True, {"subscription_type": SubscriptionType.KEY_SHARED, "on_open": OnOpen.SKIP}),
        ):
            has_keys = name.endswith("keys")
            behind = bench.sizes.scan_batches // (_BEHIND_ROUNDS_SHARE if has_keys else 1)
            rounds = bench.sizes.skip_rounds + _WARMUP
            store = opened.enter_context(
                prepared(bench, lambda store, args=(is_open, has_keys, behind, rounds): _fill(store, *args))
            )
            consumer = opened.enter_context(_attach(store, mode))
            takes[name] = _take(consumer)
            for _ in range(behind // _BATCHES):
                takes[name]()
        samples = interleave(takes, rounds=bench.sizes.skip_rounds, warmup=_WARMUP)
    yield compare(skip, samples["skip"], samples["none"])
    yield compare(uncommitted, samples["uncommitted"], samples["none"])
    yield compare(keys, samples["skip, keys"], samples["none, keys"])


def _fill(store: Store, is_open: bool, has_keys: bool, behind: int, rounds: int) -> None:
    payload = Payload(_COUNT)
    with store.create_producer(TOPIC) as producer:
        if is_open:
            producer.send_batch(
                payload.batch()[:_KEYS_OPEN],
                keys=_KEYS[:_KEYS_OPEN] if has_keys else None,
                txn=store.begin_transaction(timeout=_TIMEOUT_S),
            )
        for _ in range(behind + rounds * _BATCHES):
            producer.send_batch(list(payload.batch()), keys=_KEYS if has_keys else None)


def _attach(store: Store, mode: dict[str, object]) -> Consumer:
    return store.subscribe(TOPIC, "bench", initial_position=EARLIEST, receiver_queue_size=_WINDOW, **mode)  # type: ignore[arg-type]


def _take(consumer: Consumer) -> Operation:
    """Receive and acknowledge the messages of ten batches, without the waiting ones, a thousand at a time."""

    def take() -> None:
        left = _BATCHES * (_COUNT - _KEYS_OPEN)
        while left:
            messages = consumer.receive_batch(min(_COUNT, left), timeout=0)
            assert messages.values, f"{left} messages missing"
            consumer.acknowledge(messages)
            left -= len(messages)

    return take
