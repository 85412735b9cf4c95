"""SQLite in WAL mode with synchronous=FULL, through Python's own module: a table as a log, a row as its cursor."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

_SCHEMA = """
    create table log (id integer primary key, value blob not null);
    create table cursor (name text primary key, done integer not null) without rowid;
    insert into cursor values ('consumer', 0);
"""


class SqliteWal:
    """A `Queue`. Call `warm_up` before measuring: a fresh WAL grows the file, a recycled WAL does not."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._database = sqlite3.connect(directory / "log.db", isolation_level=None)
        self._database.execute("pragma journal_mode = wal")
        self._database.execute("pragma synchronous = full")
        self._database.executescript(_SCHEMA)

    def warm_up(self, plan: Sequence[tuple[int, int]], value: bytes) -> None:
        """Append and consume in advance; `plan` lists (messages a commit, commits)."""
        for count, commits in plan:
            for _ in range(commits):
                self.append([value] * count)
        self._database.execute("update cursor set done = (select max(id) from log)")

    def append(self, values: Sequence[bytes]) -> None:
        database = self._database
        if len(values) == 1:
            database.execute("insert into log (value) values (?)", (values[0],))
            return
        database.execute("begin immediate")
        database.executemany("insert into log (value) values (?)", [(value,) for value in values])
        database.execute("commit")

    def take(self, count: int) -> int:
        database = self._database
        database.execute("begin immediate")
        rows = database.execute(
            "select id, value from log where id > (select done from cursor where name = 'consumer')"
            " order by id limit ?",
            (count,),
        ).fetchall()
        if rows:
            database.execute("update cursor set done = ? where name = 'consumer'", (rows[-1][0],))
        database.execute("commit")
        return len(rows)

    def close(self) -> None:
        self._database.close()
