"""Check that read-committed reads leave `data.mdb` byte-identical (invariant 13), by reading.

The digest of the file is compared before and after. A commit by a different process makes the comparison void: the
check tries again, and gives up after a few tries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from storage.disk.connection import Connection
from storage.errors import NotFound
from storage.txn.options import CheckMode
from storage.verify.problem import Report

if TYPE_CHECKING:
    from storage.client.table import Table

OpenTable = Callable[[str], "Table"]

_TABLES_MAX = 20
_ROWS_MAX = 100
_TRIES = 3
_PAUSE_S = 0.05
"""Longer than a commit, which may be in progress during the digest."""


def check_reads(connection: Connection, names: Sequence[str], open_table: OpenTable, report: Report) -> bool:
    """Read a sample of tables in every check mode; return whether the comparison had a result.

    Raises:
        CorruptStore
    """
    environment = connection.environment
    is_unexplained = True
    for _ in range(_TRIES):
        commit, before = environment.last_commit(), environment.digest()
        for name in names[:_TABLES_MAX]:
            try:
                _read(open_table(name))
            except NotFound:
                continue  # deleted meanwhile, or damaged, which has an invariant of its own
        if environment.digest() == before:
            return True
        connection.clock.sleep(_PAUSE_S)
        is_unexplained = is_unexplained and environment.last_commit() == commit
    if is_unexplained:
        report(
            13,
            "data.mdb" if environment.has_directory else "store",
            "changes during reads at READ_COMMITTED, without a commit",
        )
    return is_unexplained


def _read(table: Table) -> None:
    """Read present keys and an absent key, and ranges in both directions."""
    for mode in CheckMode:
        keys = [row.key for row in table.scan(limit=_ROWS_MAX, check=mode)]
        for key in [*keys, b"\xff" * 8]:
            table.get(key, check=mode)
        for row in islice(table.scan(reverse=True, limit=_ROWS_MAX, check=mode), _ROWS_MAX):
            table.get_row(row.key, check=mode)
