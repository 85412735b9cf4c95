"""C1 and C4: take messages and acknowledge them durably; of C4, messages that were sent one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.bench import Bench
from benchmarks.bursts import Operation, interleave
from benchmarks.contender import OURS, Queue, open_queues
from benchmarks.contract import SENT_ONE_BY_ONE, Target, targets_of
from benchmarks.engine import Engine
from benchmarks.payload import Payload
from benchmarks.report import Comparison, compare

_COUNT = 1000
_MESSAGES = 10_000
"""The messages of a timed operation: a whole number of windows. Entries of one message come 2,000 at once, so that of
operations of 1,000 every second would be without a dispatch, and a median over them the mean of two kinds.
"""
_WARMUP = 1


def consume_and_acknowledge(bench: Bench) -> Iterator[Comparison]:
    """C1. The timed operation is ten batches with ten acknowledgements: this store delivers that many messages at once,
    in a commit that a median over single batches would not show. Every queue is filled first.
    """
    payload = Payload(_COUNT)
    with open_queues("C1", bench) as queues:
        for queue in queues.values():
            for _ in range(_batches(bench, _COUNT)):
                queue.append(payload.batch())
        yield from _compare(bench, queues, _COUNT, targets_of("C1"))


def consume_one_by_one(bench: Bench) -> Iterator[Comparison]:
    """C4. As C1, of messages that were sent one by one: each is an entry of this store, and a row of the peer."""
    for what, count in SENT_ONE_BY_ONE:
        payload = Payload(count)
        with open_queues("C4", bench) as queues:
            for queue in queues.values():
                append = queue.append_each if isinstance(queue, Engine) else queue.append
                for _ in range(_batches(bench, count)):
                    append(payload.batch())
            targets = [target for target in targets_of("C4") if target.what == what]
            yield from _compare(bench, queues, count, targets)


def _batches(bench: Bench, count: int) -> int:
    return (bench.sizes.consume_rounds + _WARMUP) * (_MESSAGES // count)


def _compare(
    bench: Bench, queues: Mapping[str, Queue], count: int, targets: Sequence[Target]
) -> Iterator[Comparison]:
    samples = interleave(
        {name: _take(name, queue, count) for name, queue in queues.items()},
        rounds=bench.sizes.consume_rounds,
        warmup=_WARMUP,
    )
    for target in targets:
        if target.beside in samples:
            yield compare(target, samples[OURS], samples[target.beside])


def _take(name: str, queue: Queue, count: int) -> Operation:
    def take() -> None:
        for _ in range(_MESSAGES // count):
            taken = queue.take(count)
            assert taken == count, f"{name} handed over {taken} messages instead of {count}"

    return take
