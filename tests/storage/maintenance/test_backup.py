"""Backups: one view of the store, whole or not there; tests/processes/test_copies.py has them beside writers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import EARLIEST, Store
from storage.errors import AlreadyExists


def values(store: Store) -> list[bytes | None]:
    """Every committed value of `t`."""
    with store.reader("t", start=EARLIEST) as reader:
        return [message.value for message in reader]


def test_a_backup_is_a_store_as_it_was(store: Store, tmp_path: Path) -> None:
    """What comes later is not in it; it is private, as every store."""
    store.create_producer("t").send(b"before")
    store.maintenance.backup_store(tmp_path / "copy")
    store.create_producer("t").send(b"after")
    with Store.open(tmp_path / "copy", read_only=True) as copy:
        assert copy.maintenance.verify_store() == []
        assert values(copy) == [b"before"]
    assert values(store) == [b"before", b"after"]
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700


def test_progress_ends_with_all_that_was_written(store: Store, tmp_path: Path) -> None:
    """It only grows, and never beyond the whole."""
    steps: list[tuple[int, int]] = []
    store.maintenance.backup_store(
        tmp_path / "copy", progress=lambda done, total: steps.append((done, total))
    )
    assert steps == sorted(steps)
    assert all(done <= total for done, total in steps)
    assert steps[-1][0] == os.stat(tmp_path / "copy" / "data.mdb").st_size


def test_what_is_there_is_left(store: Store, tmp_path: Path) -> None:
    """Nor is anything left beside it."""
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "diary").touch()
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(AlreadyExists):
        store.maintenance.backup_store(tmp_path / "copy")
    assert sorted(os.listdir(tmp_path)) == before


def test_an_interrupt_ends_the_copy_and_leaves_nothing(store: Store, tmp_path: Path) -> None:
    """Though LMDB copies in one call that nothing interrupts."""
    before = sorted(os.listdir(tmp_path))

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.maintenance.backup_store(tmp_path / "copy", progress=interrupt)
    assert sorted(os.listdir(tmp_path)) == before
    store.maintenance.backup_store(tmp_path / "copy")
