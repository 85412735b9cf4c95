"""The lock file: the store lock, and whether the file is still the one at its path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import NotAStore, StoreInUse, StoreInvalid, StoreNotFound
from storage.process.clock import ManualClock
from storage.process.lock_file import FILE_NAME, LockFile, open_locks, processes_with


@pytest.fixture
def lock_path(tmp_path: Path) -> Path:
    """An empty lock file."""
    path = tmp_path / FILE_NAME
    path.write_bytes(b"")
    return path


@pytest.fixture
def two(lock_path: Path) -> Iterator[tuple[LockFile, LockFile]]:
    """The file, opened by two that do not know of each other."""
    files = (
        LockFile(str(lock_path), ManualClock(), writable=True),
        LockFile(str(lock_path), ManualClock(), writable=True),
    )
    yield files
    for each in files:
        each.close()


def test_the_store_is_shared_or_owned(two: tuple[LockFile, LockFile]) -> None:
    """Owning needs that nobody shares; sharing that nobody owns."""
    first, second = two
    first.share_store()
    second.share_store()
    assert not first.own_store()
    second.close()
    assert first.own_store()


def test_a_store_that_is_owned_is_not_shared(two: tuple[LockFile, LockFile]) -> None:
    """Whoever comes is told what is going on."""
    first, second = two
    assert first.own_store()
    with pytest.raises(StoreInUse, match="compacted"):
        second.share_store()


def test_writers_and_unlisted_readers_exclude_each_other(two: tuple[LockFile, LockFile]) -> None:
    """Many of one side at once; a side that was refused leaves nothing behind."""
    first, second = two
    assert first.begin_unlisted_reading() and second.begin_unlisted_reading()
    assert not first.begin_writing()
    second.end_unlisted_reading()
    first.end_unlisted_reading()
    assert first.begin_writing() and second.begin_writing()
    assert not first.begin_unlisted_reading()
    second.close()
    assert first.begin_unlisted_reading(), "a process is no obstacle to itself"


def test_gate_and_leases_are_bytes_of_their_own(two: tuple[LockFile, LockFile]) -> None:
    """Holding all of one kind keeps nobody from the others."""
    first, second = two
    first.share_store()
    first.gate.enter(0, None)
    assert first.leases.hold(0)
    assert first.leases.hold(1)
    second.share_store()
    assert second.leases.hold(2)
    assert second.gate.is_held()
    first.gate.leave()
    assert not second.gate.is_held()


def test_a_file_that_was_replaced_is_noticed(lock_path: Path, two: tuple[LockFile, LockFile]) -> None:
    """By its identity, not by its name."""
    first, _ = two
    first.gate.check_in_place()
    (lock_path.parent / "new").write_bytes(b"")
    os.replace(lock_path.parent / "new", lock_path)
    with pytest.raises(StoreNotFound, match="removed, moved or replaced"):
        first.gate.check_in_place()
    lock_path.unlink()
    with pytest.raises(StoreNotFound):
        first.gate.check_in_place()


def test_opening_says_what_is_missing_or_forbidden(tmp_path: Path, lock_path: Path) -> None:
    """A directory without the file is no store; a link in its place is not followed."""
    open_locks(str(tmp_path), ManualClock(), read_only=True).close()
    target = lock_path.rename(tmp_path / "elsewhere")
    with pytest.raises(NotAStore, match=r"store\.lock is missing"):
        open_locks(str(tmp_path), ManualClock(), read_only=True)
    lock_path.symlink_to(target)
    with pytest.raises(StoreInvalid, match=r"cannot open .*store\.lock"):
        open_locks(str(tmp_path), ManualClock(), read_only=True)


def test_this_process_is_not_among_those_that_have_it_open(
    lock_path: Path, two: tuple[LockFile, LockFile]
) -> None:
    """It knows that it has; tests/processes has others."""
    assert two
    assert processes_with(str(lock_path)) == []
