"""Checking that read-committed reads leave `data.mdb` byte-identical (invariant 13), by reading.

The file is summed up before and after. That tells something only while nobody else writes: where others commit
meanwhile it is tried again, and given up after a few times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING

from storage.disk.connection import Connection
from storage.disk.directory import DATA
from storage.errors import NotFound
from storage.txn.options import CheckMode

if TYPE_CHECKING:
    from storage.client.table import Table

Report = Callable[[int | None, str, str], None]
OpenTable = Callable[[str], "Table"]

_TABLES_MAX = 20
_ROWS_MAX = 100
_TRIES = 3
_PAUSE_S = 0.05
"""Long enough for a commit that was under way when the file was summed up."""
_CHUNK = 1 << 20


def check_reads(connection: Connection, names: Sequence[str], open_table: OpenTable, report: Report) -> bool:
    """Read a sample of these tables in every check mode; whether it could be told that nothing changed.

    Raises:
        CorruptStore
    """
    environment, path = connection.environment, os.path.join(connection.path, DATA)
    is_unexplained = True
    for _ in range(_TRIES):
        commit, before = environment.last_commit(), _sum(path)
        for name in names[:_TABLES_MAX]:
            try:
                _read(open_table(name))
            except NotFound:
                continue  # deleted meanwhile, or damaged, which is told under another number
        if _sum(path) == before:
            return True
        connection.clock.sleep(_PAUSE_S)
        is_unexplained = is_unexplained and environment.last_commit() == commit
    if is_unexplained:
        report(13, DATA, "changes while it is read at READ_COMMITTED, though nobody commits")
    return is_unexplained


def _read(table: Table) -> None:
    """Keys that are there and one that is not, and ranges in both directions."""
    for mode in CheckMode:
        keys = [row.key for row in table.scan(limit=_ROWS_MAX, check=mode)]
        for key in [*keys, b"\xff" * 8]:
            table.get(key, check=mode)
        for row in islice(table.scan(reverse=True, limit=_ROWS_MAX, check=mode), _ROWS_MAX):
            table.get_row(row.key, check=mode)


def _sum(path: str) -> bytes:
    found = blake2b()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.digest()
