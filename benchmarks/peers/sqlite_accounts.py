"""SQLite beside tables: accounts in a database in WAL mode with synchronous=FULL, writers that BEGIN IMMEDIATE."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.accounts import BALANCE, key
from benchmarks.contention import pair

_BUSY_S = 60.0


def connect(directory: Path) -> sqlite3.Connection:
    """Open a connection that waits for locks with SQLite's own busy handler."""
    database = sqlite3.connect(directory / "accounts.db", isolation_level=None, timeout=_BUSY_S)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = full")
    return database


def create(directory: Path, rows: Iterable[tuple[bytes, bytes]], warmup: Sequence[tuple[int, int]]) -> None:
    """Make and warm up a database of accounts; `warmup` lists (rows a commit, commits)."""
    directory.mkdir()
    database = connect(directory)
    database.execute("create table accounts (key blob primary key, value blob not null) without rowid")
    database.execute("begin immediate")
    database.executemany("insert into accounts values (?, ?)", rows)
    database.execute("commit")
    for count, commits in warmup:
        for _ in range(commits):
            database.execute("begin immediate")
            database.executemany(
                "update accounts set value = ? where key = ?", [(BALANCE, key(n)) for n in range(count)]
            )
            database.execute("commit")
    database.close()


class SqliteTransfers:
    """`Work`: 2 select, 2 update and commit, like the transfer of this store."""

    def __init__(self, directory: Path, count: int, number: int) -> None:
        self._database = connect(directory)
        self._chance = random.Random(number)
        self._number, self._count = number, count
        self._source = self._target = b""

    def choose(self, load: str) -> None:
        source, target = pair(load, self._chance, self._number, self._count)
        self._source, self._target = key(source), key(target)

    def attempt(self) -> bool:
        self._database.execute("begin immediate")
        source, target = self._get(self._source), self._get(self._target)
        self._put(self._source, source - 1)
        self._put(self._target, target + 1)
        self._database.execute("commit")
        return True

    def _get(self, name: bytes) -> int:
        [value] = self._database.execute("select value from accounts where key = ?", (name,)).fetchone()
        return int(value)

    def _put(self, name: bytes, balance: int) -> None:
        self._database.execute("update accounts set value = ? where key = ?", (b"%0100d" % balance, name))

    def close(self) -> None:
        self._database.close()


class VersionedRows:
    """Rows by key and version: the usual schema on SQLite for reads as of a version."""

    def __init__(self, directory: Path, rows: Iterable[tuple[bytes, bytes]]) -> None:
        directory.mkdir()
        self._database = connect(directory)
        self._database.execute(
            "create table versions (key blob, version integer, value blob, primary key (key, version)) without rowid"
        )
        self._database.execute("begin immediate")
        self._database.executemany("insert into versions values (?, 1, ?)", rows)
        self._database.execute("commit")
        self._last = 1

    def get(self, name: bytes) -> bytes:
        """The newest version of a key."""
        query = "select value from versions where key = ? and version <= ? order by version desc limit 1"
        [value] = self._database.execute(query, (name, self._last)).fetchone()
        return bytes(value)

    def put(self, name: bytes, value: bytes) -> None:
        """A new version, durable."""
        self._last += 1
        self._database.execute("insert into versions values (?, ?, ?)", (name, self._last, value))

    def scan(self, count: int) -> int:
        """Read the newest versions of the first keys; how many there were."""
        query = "select key, value, max(version) from versions where version <= ? group by key order by key limit ?"
        return len(self._database.execute(query, (self._last, count)).fetchall())

    def close(self) -> None:
        self._database.close()
