"""T1, T3: the cost of a transaction over topics, and of its end by the size of the transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from time import perf_counter

from benchmarks import accounts
from benchmarks.bench import Bench
from benchmarks.bursts import Operation, Sample, interleave
from benchmarks.contract import targets_of
from benchmarks.engine import TOPIC
from benchmarks.payload import Payload
from benchmarks.peers.sqlite_wal import SqliteWal
from benchmarks.report import Comparison, compare
from storage import Store

_SENDS = 3
_SMALL_COMMITS = 5
_ENDS = (10, 100)


def thirty_messages(bench: Bench) -> Iterator[Comparison]:
    """T1. Our transaction buffers its sends and is one durable commit, like the first peer; the second peer commits
    each step, like a transaction of ours that is used by its number. Then ten and a hundred ends of ours are one flush,
    beside the first peer, which ends one by one.
    """
    once, each_step, *grouped = targets_of("T1")
    payload = Payload(10)
    with bench.scratch() as directory:
        Store.create(directory / "store")
        database = SqliteWal(directory / "sqlite")
        database.warm_up(bench.sizes.sqlite_warmup, value=b"w" * 100)
        with closing(database), Store.open(directory / "store") as store:
            store.create_topic(TOPIC)
            samples = interleave(
                {
                    "ours": _transaction(store, payload),
                    "once": lambda: database.append([v for _ in range(_SENDS) for v in payload.batch()]),
                    "each step": lambda: _append_each(database, payload),
                },
                rounds=bench.sizes.commit_rounds,
                burst=10,
                warmup=2,
            )
            many = [_grouped(bench, store, database, ends) for ends in _ENDS]
    yield compare(once, samples["ours"], samples["once"])
    yield compare(each_step, samples["ours"], samples["each step"])
    for target, (ours, peer) in zip(grouped, many, strict=True):
        yield compare(target, ours, peer)


def _grouped(bench: Bench, store: Store, database: SqliteWal, ends: int) -> tuple[Sample, Sample]:
    """The time of an end: so many of ours in a group, and so many of SQLite one by one."""
    payload = Payload(10)
    transaction = _transaction(store, payload)

    def together() -> None:
        with store.group():
            for _ in range(ends):
                transaction()

    def one_by_one() -> None:
        for _ in range(ends):
            database.append([value for _ in range(_SENDS) for value in payload.batch()])

    samples = interleave(
        {"ours": together, "peer": one_by_one}, rounds=bench.sizes.commit_rounds, burst=1, warmup=2
    )
    return samples["ours"].divided(ends), samples["peer"].divided(ends)


def _transaction(store: Store, payload: Payload) -> Operation:
    producer = store.create_producer(TOPIC)

    def run() -> None:
        with store.transaction() as txn:
            for _ in range(_SENDS):
                producer.send_batch(payload.batch(), txn=txn)

    return run


def _append_each(database: SqliteWal, payload: Payload) -> None:
    for _ in range(_SENDS):
        database.append(payload.batch())


def commit_of_many_keys(bench: Bench) -> Iterator[Comparison]:
    """T3. All intents are written before the clock runs: the end alone is timed."""
    [target] = targets_of("T3")
    many, one = Sample(), Sample()
    with bench.scratch() as directory:
        accounts.create(directory / "store", bench.sizes.commit_keys)
        with Store.open(directory / "store") as store:
            _timed_commit(store, bench.sizes.commit_keys)
            for _ in range(bench.sizes.commit_keys_rounds):
                many.times.append(_timed_commit(store, bench.sizes.commit_keys))
                one.times += [_timed_commit(store, 1) for _ in range(_SMALL_COMMITS)]
    yield compare(target, many, one)


def _timed_commit(store: Store, keys: int) -> float:
    table = store.table(accounts.TABLE)
    with store.transaction(timeout=3600) as txn:
        for key, value in accounts.rows(keys):
            table.put(key, value, txn=txn)
        txn.flush()
        began = perf_counter()
        txn.commit()
        return perf_counter() - began
