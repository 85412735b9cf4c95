"""P1, P2, P3: durable appends of 100-byte messages, 1, 100 and 1,000 a commit."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.bursts import Operation, interleave
from benchmarks.contender import OURS, Log, open_logs
from benchmarks.contract import targets_of
from benchmarks.payload import Payload
from benchmarks.report import Comparison, compare


def one_a_commit(bench: Bench) -> Iterator[Comparison]:
    """P1."""
    return _appends("P1", bench, count=1, burst=25)


def hundred_a_commit(bench: Bench) -> Iterator[Comparison]:
    """P2."""
    return _appends("P2", bench, count=100, burst=10)


def thousand_a_commit(bench: Bench) -> Iterator[Comparison]:
    """P3."""
    return _appends("P3", bench, count=1000, burst=5)


def _appends(row: str, bench: Bench, *, count: int, burst: int) -> Iterator[Comparison]:
    payload = Payload(count)
    with open_logs(row, bench) as logs:
        samples = interleave(
            {name: _append(log, payload) for name, log in logs.items()},
            rounds=bench.sizes.commit_rounds,
            burst=burst,
            warmup=2,
        )
    for target in targets_of(row):
        if target.beside in samples:
            yield compare(target, samples[OURS], samples[target.beside])


def _append(log: Log, payload: Payload) -> Operation:
    return lambda: log.append(payload.batch())
