"""I3: the cost of one open transaction for the delivery of committed messages behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

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


class _Mode(NamedTuple):
    """A subscription that is measured, and whether a transaction on its topic stays open."""

    name: str
    is_open: bool
    has_keys: bool = False
    level: IsolationLevel | None = None
    on_open: OnOpen | None = None


_MODES = (
    _Mode("none", False),
    _Mode("skip", True, on_open=OnOpen.SKIP),
    _Mode("uncommitted", True, level=IsolationLevel.READ_UNCOMMITTED),
    _Mode("none, keys", False, has_keys=True),
    _Mode("skip, keys", True, has_keys=True, on_open=OnOpen.SKIP),
)


def delivery_with_one_open(bench: Bench) -> Iterator[Comparison]:
    """I3. Receive and acknowledge ten batches, in topics whose first message is in a transaction that stays open.

    Before the clock runs, a million messages behind the transaction are delivered and acknowledged. The peers are the
    same subscriptions of topics without open transactions. Blocking READ_COMMITTED has no figure: nothing is delivered.
    """
    skip, uncommitted, keys = targets_of("I3")
    with ExitStack() as opened:
        takes: dict[str, Operation] = {}
        for mode in _MODES:
            behind = bench.sizes.scan_batches // (_BEHIND_ROUNDS_SHARE if mode.has_keys else 1)
            rounds = bench.sizes.skip_rounds + _WARMUP
            store = opened.enter_context(
                prepared(bench, partial(_fill, mode=mode, batches=behind + rounds * _BATCHES))
            )
            consumer = opened.enter_context(_attach(store, mode))
            takes[mode.name] = _take(consumer)
            for _ in range(behind // _BATCHES):
                takes[mode.name]()
        samples = interleave(takes, rounds=bench.sizes.skip_rounds, warmup=_WARMUP)
    yield compare(skip, samples["skip"], samples["none"])
    yield compare(uncommitted, samples["uncommitted"], samples["none"])
    yield compare(keys, samples["skip, keys"], samples["none, keys"])


def _fill(store: Store, mode: _Mode, batches: int) -> None:
    payload = Payload(_COUNT)
    with store.create_producer(TOPIC) as producer:
        if mode.is_open:
            producer.send_batch(
                payload.batch()[:_KEYS_OPEN],
                keys=_KEYS[:_KEYS_OPEN] if mode.has_keys else None,
                txn=store.begin_transaction(timeout=_TIMEOUT_S),
            )
        for _ in range(batches):
            producer.send_batch(list(payload.batch()), keys=_KEYS if mode.has_keys else None)


def _attach(store: Store, mode: _Mode) -> Consumer:
    return store.subscribe(
        TOPIC,
        "bench",
        initial_position=EARLIEST,
        receiver_queue_size=_WINDOW,
        subscription_type=SubscriptionType.KEY_SHARED if mode.has_keys else SubscriptionType.SHARED,
        subscription_isolation_level=mode.level,
        on_open=mode.on_open,
    )


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
