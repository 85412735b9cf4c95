"""Reads: `storage/verify/reads.py`."""

from __future__ import annotations

import os
from collections.abc import Callable

from storage import CheckMode, Store, Table
from storage.verify import run
from storage.verify.reads import check_reads


class _Spoiled(Table):
    """A table of which a read writes into the file."""

    spoil: Callable[[], object]

    def get(self, key: bytes, **how: object) -> bytes | None:
        """As a table's, and something else."""
        self.spoil()
        return super().get(key, **how)  # type: ignore[arg-type]


def spoiled(store: Store, spoil: Callable[[], object]) -> Callable[[str], Table]:
    """Opens tables that do this at every read."""

    def open_table(name: str) -> Table:
        table = store.table(name)
        table.__class__ = _Spoiled
        table.spoil = spoil  # type: ignore[attr-defined]
        return table

    return open_table


def reads(store: Store, open_table: Callable[[str], Table]) -> tuple[bool, list[tuple[int | None, str]]]:
    """Whether something could be told, and what was found."""
    found: list[tuple[int | None, str]] = []
    could_tell = check_reads(
        store.connection, store.tables(), open_table, lambda rule, what, _: found.append((rule, what))
    )
    return could_tell, found


def test_reads_that_change_nothing_are_well(contended: Store) -> None:
    """Of a store that is open for writing, in every mode."""
    assert len(CheckMode) == 3
    assert reads(contended, contended.table) == (True, [])


def test_a_read_that_changes_the_file_is_found(contended: Store) -> None:
    """A byte behind its end will do, though no commit is counted."""
    path = os.path.join(contended.path, "data.mdb")
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        assert reads(contended, spoiled(contended, lambda: os.write(descriptor, b"x"))) == (
            True,
            [(13, "data.mdb")],
        )
    finally:
        os.close(descriptor)


def test_where_others_commit_meanwhile_nothing_is_told(contended: Store) -> None:
    """Neither that it is well nor that it is not; and 13 is not among what was checked."""
    with Store.open(contended.path, clock=contended.connection.clock) as other:
        commit = spoiled(contended, lambda: other.table("accounts").put(b"busy", b"x"))
        assert reads(contended, commit) == (False, [])
        numbers: list[int] = []
        assert run.run(contended.connection, commit, checked=numbers.append) == []
    assert numbers == list(run.FULL)
