"""C1: take a thousand messages and acknowledge them durably."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.bursts import Operation, interleave
from benchmarks.contender import OURS, Queue, open_queues
from benchmarks.contract import targets_of
from benchmarks.payload import Payload
from benchmarks.report import Comparison, compare

_COUNT = 1000
_BATCHES = 10
_WARMUP = 1


def consume_and_acknowledge(bench: Bench) -> Iterator[Comparison]:
    """C1. The timed operation is ten batches with ten acknowledgements: this store delivers that many messages at once,
    in a commit that a median over single batches would not show. Every queue is filled first.
    """
    rounds = bench.sizes.consume_rounds
    payload = Payload(_COUNT)
    with open_queues("C1", bench) as queues:
        for queue in queues.values():
            for _ in range((rounds + _WARMUP) * _BATCHES):
                queue.append(payload.batch())
        samples = interleave(
            {name: _take(name, queue) for name, queue in queues.items()}, rounds=rounds, warmup=_WARMUP
        )
    for target in targets_of("C1"):
        if target.beside in samples:
            yield compare(target, samples[OURS], samples[target.beside])


def _take(name: str, queue: Queue) -> Operation:
    def take() -> None:
        for _ in range(_BATCHES):
            taken = queue.take(_COUNT)
            assert taken == _COUNT, f"{name} handed over {taken} messages instead of {_COUNT}"

    return take
