"""K1: reads of a table at read-committed where every tenth key has a write intent; and scans and writes, unjudged."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path

import lmdb

from benchmarks import accounts
from benchmarks.bench import Bench
from benchmarks.bursts import Operation, Sample, interleave
from benchmarks.contract import targets_of
from benchmarks.peers.sqlite_accounts import VersionedRows
from benchmarks.report import Comparison, compare
from storage import Store, Table

_READS = 200
_SCAN_ROWS = 1000
_MAP_BYTES = 16 << 30


class RawRows:
    """LMDB with a record a key; each get has a view of its own, as ours has."""

    def __init__(self, directory: Path, rows: Iterable[tuple[bytes, bytes]]) -> None:
        self._environment = lmdb.open(str(directory), map_size=_MAP_BYTES)
        with self._environment.begin(write=True) as transaction:
            for key, value in rows:
                transaction.put(key, value)

    def get(self, key: bytes) -> bytes | None:
        with self._environment.begin() as transaction:
            value: bytes | None = transaction.get(key)
            return value

    def close(self) -> None:
        self._environment.close()


def point_reads(bench: Bench) -> Iterator[Comparison]:
    """K1. The intents are of a transaction that stays open."""
    by_lmdb, by_sqlite, scans, puts = targets_of("K1")
    count = bench.sizes.table_keys
    with bench.scratch() as directory:
        accounts.create(directory / "store", count)
        with (
            Store.open(directory / "store") as store,
            closing(RawRows(directory / "lmdb", accounts.rows(count))) as raw,
            closing(VersionedRows(directory / "sqlite", accounts.rows(count))) as database,
        ):
            table = store.table(accounts.TABLE)
            holder = store.begin_transaction(timeout=3600)
            tenth = [
                (key, value) for number, (key, value) in enumerate(accounts.rows(count)) if number % 10 == 0
            ]
            table.import_rows(tenth, txn=holder)
            samples = _samples(bench, table, raw, database)
            store.admin.transactions.abort_transaction(holder)
    yield compare(by_lmdb, samples["ours"], samples["lmdb"])
    yield compare(by_sqlite, samples["ours"], samples["sqlite"])
    yield compare(scans, samples["our scan"], samples["sqlite scan"])
    yield compare(puts, samples["our put"], samples["sqlite put"])


def _samples(bench: Bench, table: Table, raw: RawRows, database: VersionedRows) -> dict[str, Sample]:
    count, rounds = bench.sizes.table_keys, bench.sizes.commit_rounds
    chance = random.Random(count)
    keys = [[accounts.key(chance.randrange(count)) for _ in range(_READS)] for _ in range(50)]
    scanned_rows = min(_SCAN_ROWS, count)
    free = cycle([accounts.key(number) for number in range(count) if number % 10])

    def scan() -> None:
        assert sum(1 for _ in table.scan(limit=scanned_rows)) == scanned_rows, "all accounts are there"

    def scan_sqlite() -> None:
        assert database.scan(scanned_rows) == scanned_rows, "all accounts are there"

    reads = {
        "ours": _gets(table.get, keys),
        "lmdb": _gets(raw.get, keys),
        "sqlite": _gets(database.get, keys),
    }
    return {
        **interleave(reads, rounds=rounds, burst=5, warmup=2),
        **interleave({"our scan": scan, "sqlite scan": scan_sqlite}, rounds=rounds, burst=3),
        **interleave(
            {
                "our put": lambda: table.put(next(free), accounts.BALANCE),
                "sqlite put": lambda: database.put(next(free), accounts.BALANCE),
            },
            rounds=rounds,
            burst=10,
            warmup=10,
        ),
    }


def _gets(get: Callable[[bytes], bytes | None], keys: list[list[bytes]]) -> Operation:
    """Many gets an operation: the clock would cost as much as one."""
    turns = cycle(keys)

    def run() -> None:
        for key in next(turns):
            assert get(key) is not None, "all accounts are there"

    return run
