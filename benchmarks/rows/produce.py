"""P1, P2, P3, P5: durable appends of 100-byte messages, 1, 100 and 1,000 a commit; and without waiting."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bench import Bench
from benchmarks.bursts import Operation, interleave
from benchmarks.contender import OURS, Log, open_logs
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC
from benchmarks.payload import Payload
from benchmarks.report import Comparison, compare
from storage import Store

_ON_THE_WAY = 100


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


def without_waiting(bench: Bench) -> Iterator[Comparison]:
    """P5. Our `send_async` beside our `send`: a hundred messages of each, the time of one."""
    [target] = targets_of("P5")
    payload = Payload(_ON_THE_WAY)
    with bench.scratch() as directory:
        Store.create(directory / "store")
        with Store.open(directory / "store") as store:
            store.create_topic(TOPIC)
            producer = store.create_producer(TOPIC)

            def send_async() -> None:
                for future in [producer.send_async(value) for value in payload.batch()]:
                    future.result()

            def send() -> None:
                for value in payload.batch():
                    producer.send(value)

            samples = interleave(
                {"async": send_async, "send": send}, rounds=bench.sizes.commit_rounds, burst=1, warmup=2
            )
    yield compare(target, samples["async"].divided(_ON_THE_WAY), samples["send"].divided(_ON_THE_WAY))


def _append(log: Log, payload: Payload) -> Operation:
    return lambda: log.append(payload.batch())
