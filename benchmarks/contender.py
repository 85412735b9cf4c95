"""What every contender can do, ours and theirs: append durably, and take with a durable acknowledgement.

`open_queues` and `open_logs` bring together those that a row's targets name. A peer whose program is not installed
stays out, and the run says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol

from benchmarks import contract
from benchmarks.bench import Bench
from benchmarks.contract import targets_of
from benchmarks.engine import Engine
from benchmarks.peers import redis_stream
from benchmarks.peers.plain_file import PlainFile
from benchmarks.peers.raw_lmdb import RawLmdb
from benchmarks.peers.sqlite_wal import SqliteWal

OURS = "ours"


class Log(Protocol):
    """Stores messages; `append` returns when all of them would survive a power cut."""

    def append(self, values: Sequence[bytes]) -> None: ...

    def close(self) -> None: ...


class Queue(Log, Protocol):
    """A log with one consumer."""

    def take(self, count: int) -> int:
        """Hand over the next `count` messages and remember durably that they are done; how many there were."""
        ...


@contextmanager
def open_logs(row: str, bench: Bench) -> Iterator[dict[str, Log]]:
    """Ours and every log that the row's targets name, by that name; closed and removed at the end."""
    with bench.scratch() as directory, ExitStack() as opened:
        logs: dict[str, Log] = {}
        for name in _names(row):
            place = directory / name
            log = _raw_lmdb(name, place) or _queue(name, place, bench)
            if log is not None:
                logs[name] = opened.enter_context(closing(log))
        yield logs


@contextmanager
def open_queues(row: str, bench: Bench) -> Iterator[dict[str, Queue]]:
    """As `open_logs`, for rows whose contenders are consumed from too."""
    with bench.scratch() as directory, ExitStack() as opened:
        queues: dict[str, Queue] = {}
        for name in _names(row):
            queue = _queue(name, directory / name, bench)
            if queue is not None:
                queues[name] = opened.enter_context(closing(queue))
        yield queues


def _names(row: str) -> list[str]:
    return [OURS, *dict.fromkeys(target.beside for target in targets_of(row))]


def _raw_lmdb(name: str, place: Path) -> Log | None:
    if name in (contract.RAW_LMDB, contract.RAW_LMDB_PUTS):
        return RawLmdb(place, put_each=name == contract.RAW_LMDB_PUTS)
    return None


def _queue(name: str, place: Path, bench: Bench) -> Queue | None:
    if name == OURS:
        return Engine(place)
    if name == contract.PLAIN_FILE:
        return PlainFile(place)
    if name == contract.SQLITE:
        database = SqliteWal(place)
        database.warm_up(bench.sizes.sqlite_warmup, value=b"w" * 100)
        return database
    assert name == contract.REDIS, name
    return _redis(place, bench)


def _redis(place: Path, bench: Bench) -> Queue | None:
    server = redis_stream.program()
    if server is None:
        bench.note(f"Redis is left out: {redis_stream.HOW_TO_GET_IT}")
        return None
    bench.versions["redis"] = redis_stream.server_version(server)
    return redis_stream.RedisStream(server, place)
