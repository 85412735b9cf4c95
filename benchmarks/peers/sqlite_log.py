"""SQLite beside several producers: each process inserts a row and commits, in one database in WAL mode."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.sqlite_wal import SqliteWal

_BUSY_S = 600.0
"""Longer than any measurement: no process gives up."""


class Inserts:
    """`Work`: one row a commit, into the database that a `SqliteWal` made and warmed up."""

    def __init__(self, directory: Path, number: int) -> None:
        self._database = sqlite3.connect(directory / "log.db", isolation_level=None, timeout=_BUSY_S)
        self._database.execute("pragma synchronous = full")
        self._value = b"%0100d" % number

    def choose(self, load: None) -> None: ...

    def attempt(self) -> bool:
        self._database.execute("insert into log (value) values (?)", (self._value,))
        return True

    def close(self) -> None:
        self._database.close()


def create(directory: Path, warmup: Sequence[tuple[int, int]]) -> None:
    """Make the database and warm it up."""
    database = SqliteWal(directory)
    database.warm_up(warmup, value=b"w" * 100)
    database.close()
