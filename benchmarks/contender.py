"""The operations of every contender: append durably, and take with a durable acknowledgement.

`open_queues` and `open_logs` open the contenders that a row's targets name. A peer whose program is not installed is
skipped, with a note.
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
    """Stores messages; `append` returns when all messages are durable."""

    def append(self, values: Sequence[bytes]) -> None: ...

    def close(self) -> None: ...


class Queue(Log, Protocol):
    """A log with one consumer."""

    def take(self, count: int) -> int:
        """Return the number of messages taken, at most `count`, after recording them durably as done."""
        ...


@contextmanager
def open_logs(row: str, bench: Bench) -> Iterator[dict[str, Log]]:
    """Open this store and every log that the row's targets name, by name; closed and removed at the end."""
    with bench.scratch() as directory, ExitStack() as opened:
        logs: dict[str, Log] = {}
        for name in _names(row):
            directory_of_log = directory / name
            log = _raw_lmdb(name, directory_of_log) or _queue(name, directory_of_log, bench)
            if log is not None:
                logs[name] = opened.enter_context(closing(log))
        yield logs


@contextmanager
def open_queues(row: str, bench: Bench) -> Iterator[dict[str, Queue]]:
    """Open the contenders like `open_logs`, for rows that consume too."""
    with bench.scratch() as directory, ExitStack() as opened:
        queues: dict[str, Queue] = {}
        for name in _names(row):
            queue = _queue(name, directory / name, bench)
            if queue is not None:
                queues[name] = opened.enter_context(closing(queue))
        yield queues


def _names(row: str) -> list[str]:
    return [OURS, *dict.fromkeys(target.beside for target in targets_of(row))]


def _raw_lmdb(name: str, directory: Path) -> Log | None:
    if name in (contract.RAW_LMDB, contract.RAW_LMDB_PUTS):
        return RawLmdb(directory, put_each=name == contract.RAW_LMDB_PUTS)
    return None


def _queue(name: str, directory: Path, bench: Bench) -> Queue | None:
    if name == OURS:
        return Engine(directory)
    if name == contract.PLAIN_FILE:
        return PlainFile(directory)
    if name == contract.SQLITE:
        database = SqliteWal(directory)
        database.warm_up(bench.sizes.sqlite_warmup, value=b"w" * 100)
        return database
    assert name == contract.REDIS, name
    return _redis(directory, bench)


def _redis(directory: Path, bench: Bench) -> Queue | None:
    server = redis_stream.program()
    if server is None:
        bench.note(f"Redis is left out: {redis_stream.HOW_TO_GET_IT}")
        return None
    bench.versions["redis"] = redis_stream.server_version(server)
    return redis_stream.RedisStream(server, directory)
