"""The reader table: every byte has room, a reader makes none, a missing one is made by a writer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.disk.lmdb import reader_table
from storage.errors import NotPermitted, StoreInUse, StoreInvalid
from storage.process.clock import ManualClock
from storage.process.lock_file import FILE_NAME, LockFile


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[LockFile, LockFile]]:
    """The lock file of a directory, opened twice."""
    (tmp_path / FILE_NAME).touch()
    files = [LockFile(str(tmp_path / FILE_NAME), ManualClock(), writable=True) for _ in range(2)]
    yield files[0], files[1]
    for each in files:
        each.close()


def secure(path: Path, locks: LockFile, *, read_only: bool, timeout_s: float = 0) -> bool:
    return reader_table.secure(
        str(path), locks, ManualClock(), read_only=read_only, timeout_s=timeout_s, on_wait=None
    )


@pytest.mark.parametrize("size", [None, 0, 128, 191])
def test_a_missing_or_short_table_is_made_by_a_writer_alone(
    tmp_path: Path, two: tuple[LockFile, LockFile], size: int | None
) -> None:
    """A header without a slot is what a maker on a full disk may leave."""
    table = tmp_path / "lock.mdb"
    if size is not None:
        table.write_bytes(bytes(size))
    assert not secure(tmp_path, two[0], read_only=True)
    assert (table.stat().st_size if table.exists() else None) == size
    two[0].end_unlisted_reading()
    assert secure(tmp_path, two[1], read_only=False)
    assert table.stat().st_size == 512 * 64 + 128
    assert table.stat().st_mode & 0o777 == 0o600
    assert secure(tmp_path, two[0], read_only=True)


@pytest.mark.parametrize("read_only", [True, False])
def test_holes_are_filled_without_a_change_of_length(
    tmp_path: Path, two: tuple[LockFile, LockFile], read_only: bool
) -> None:
    """A process that has the table mapped sees as many slots as before."""
    table = tmp_path / "lock.mdb"
    table.touch()
    os.truncate(table, 100_000)
    assert secure(tmp_path, two[0], read_only=read_only)
    assert table.stat().st_blocks * 512 >= table.stat().st_size == 100_000


def test_an_unlisted_reader_and_a_writer_wait_for_each_other(
    tmp_path: Path, two: tuple[LockFile, LockFile]
) -> None:
    """As long as they may wait; a reader that finds a table has nobody to wait for."""
    reader, writer = two
    assert not secure(tmp_path, reader, read_only=True)
    with pytest.raises(StoreInUse, match="is read without LMDB's reader table") as busy:
        secure(tmp_path, writer, read_only=False, timeout_s=3)
    assert busy.value.retryable and not (tmp_path / "lock.mdb").exists()
    reader.end_unlisted_reading()
    assert secure(tmp_path, writer, read_only=False)
    os.unlink(tmp_path / "lock.mdb")
    with pytest.raises(StoreInUse, match="has no reader table to be used, and is open"):
        secure(tmp_path, reader, read_only=True, timeout_s=3)


def test_a_link_is_not_followed(tmp_path: Path, two: tuple[LockFile, LockFile]) -> None:
    """Neither to fill holes in a file of someone else, nor to make one there."""
    (tmp_path / "lock.mdb").symlink_to(tmp_path / "elsewhere")
    for read_only in (True, False):
        with pytest.raises(StoreInvalid, match=r"lock\.mdb"):
            secure(tmp_path, two[0], read_only=read_only)
    assert not (tmp_path / "elsewhere").exists()


def test_a_table_that_cannot_be_made_is_not_permitted(
    tmp_path: Path, two: tuple[LockFile, LockFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file; tests/processes/test_backups_in_place.py has the disks."""

    def refuse(_descriptor: int, _mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fchmod", refuse)
    with pytest.raises(NotPermitted, match=r"cannot write .*lock\.mdb: Operation not permitted"):
        secure(tmp_path, two[0], read_only=False)
    assert not (tmp_path / "lock.mdb").exists()
