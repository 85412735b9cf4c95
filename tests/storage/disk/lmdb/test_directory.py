"""The checks before a store is opened, one by one; tests/processes/test_store_directory.py has them from the outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import Store
from storage.disk.lmdb import directory
from storage.errors import CorruptStore, NotAStore, StoreNotFound, StoreUnsafe


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A new store."""
    Store.create(tmp_path / "s")
    return tmp_path / "s"


def test_a_sound_store_passes(path: Path) -> None:
    """And is as it was."""
    before = {name: (path / name).read_bytes() for name in os.listdir(path)}
    directory.check(str(path))
    assert {name: (path / name).read_bytes() for name in os.listdir(path)} == before


def test_absence_has_a_name(tmp_path: Path, path: Path) -> None:
    """Nothing there; a file; a directory without the data file."""
    with pytest.raises(StoreNotFound, match="no store at"):
        directory.check(str(tmp_path / "missing"))
    with pytest.raises(NotAStore, match="is a file"):
        directory.check(str(path / "data.mdb"))
    (path / "data.mdb").unlink()
    with pytest.raises(NotAStore, match=r"data\.mdb is missing"):
        directory.check(str(path))


@pytest.mark.parametrize("name", ["", "data.mdb", "store.lock", "lock.mdb"])
def test_what_others_may_write_is_unsafe(path: Path, name: str) -> None:
    """The directory, or any file; the hint says how to change it."""
    target = path / name
    os.chmod(target, target.stat().st_mode | 0o020)
    with pytest.raises(StoreUnsafe, match="may be written by other users") as refused:
        directory.check(str(path))
    assert refused.value.hint == f"Run `chmod go-w {str(target).rstrip('/')}` if you trust its content."


def test_a_link_is_no_file_of_a_store(path: Path, tmp_path: Path) -> None:
    """Whoever owns the target could exchange it."""
    (path / "data.mdb").rename(tmp_path / "elsewhere")
    (path / "data.mdb").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnsafe, match="is a link"):
        directory.check(str(path))


@pytest.mark.parametrize("size", [0, 100, 8191])
def test_a_file_without_its_two_first_pages_is_truncated(path: Path, size: int) -> None:
    """LMDB would make a new store of an empty one."""
    os.truncate(path / "data.mdb", size)
    with pytest.raises(CorruptStore, match="truncated"):
        directory.check(str(path))


def test_a_file_of_something_else_is_no_store(path: Path) -> None:
    """By the magic number of LMDB's first page."""
    with open(path / "data.mdb", "r+b") as file:
        file.write(b"SQLite format 3\0" + b"\0" * 16)
    with pytest.raises(NotAStore, match="not a file of LMDB"):
        directory.check(str(path))


def test_first_pages_that_are_no_neighbours_are_damage(path: Path) -> None:
    """One of them is of another time."""
    with open(path / "data.mdb", "r+b") as file:
        file.seek(16 + 128)
        file.write((1000).to_bytes(8, "little"))
    with pytest.raises(CorruptStore, match="the two first pages name the commits 1000 and"):
        directory.check(str(path))


def test_a_relative_path_needs_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was removed has no path."""
    assert directory.resolved("s", os.path.abspath) == os.path.join(os.getcwd(), "s")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(StoreNotFound, match="the current directory was removed"):
        directory.resolved("s", os.path.abspath)


def test_a_directory_made_by_root_belongs_to_the_owner_of_the_store(path: Path) -> None:
    """For the owner alone; one that is there already stays as it is."""
    owner = 1001 if os.geteuid() == 0 else os.geteuid()
    os.chown(path, owner, -1)
    directory.make_subdirectory(str(path / "staging"), str(path))
    status = (path / "staging").stat()
    assert (status.st_uid, status.st_mode & 0o777) == (owner, 0o700)
    (path / "staging").chmod(0o750)
    directory.make_subdirectory(str(path / "staging"), str(path))
    assert (path / "staging").stat().st_mode & 0o777 == 0o750
