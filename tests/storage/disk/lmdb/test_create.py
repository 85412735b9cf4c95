"""Creating a store; tests/processes/test_creation.py has what kills and rivals leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage import Store
from storage.disk.lmdb.create import building, check_free, create, install
from storage.errors import AlreadyExists, InvalidValue, StoreInvalid
from storage.process.clock import ManualClock


def test_a_new_store_is_private_and_whole(tmp_path: Path) -> None:
    """Three files, and directories on the way are made."""
    path = tmp_path / "deep" / "er" / "s"
    create(str(path), ManualClock())
    assert sorted(os.listdir(path)) == ["data.mdb", "lock.mdb", "reserve", "store.lock"]
    assert path.stat().st_mode & 0o777 == 0o700
    assert {(path / name).stat().st_mode & 0o777 for name in os.listdir(path)} == {0o600}
    assert os.listdir(path.parent) == ["s"]
    with Store.open(path) as store:
        assert store.maintenance.verify_store() == []


def test_two_stores_have_two_ids(tmp_path: Path) -> None:
    """However alike they were made."""
    ids = []
    for name in ("a", "b"):
        create(str(tmp_path / name), ManualClock())
        with Store.open(tmp_path / name) as store, store.connection.view() as view:
            ids.append(view.superblock.store_id)
    assert ids[0] != ids[1]


def test_an_empty_directory_is_filled(tmp_path: Path) -> None:
    """In its place, as it may be mounted."""
    (tmp_path / "s").mkdir(mode=0o755)
    inode = (tmp_path / "s").stat().st_ino
    create(str(tmp_path / "s"), ManualClock())
    assert (tmp_path / "s").stat().st_ino == inode
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    assert sorted(os.listdir(tmp_path / "s")) == ["data.mdb", "lock.mdb", "reserve", "store.lock"]


@pytest.mark.parametrize("inside", ["s/backup", "s/deep/backup", "link/backup", "s/reads.d/../backup"])
def test_no_store_is_made_inside_a_store(tmp_path: Path, inside: str) -> None:
    """Neither a new one nor a backup of it nor a restored one: it would go wherever the outer one goes."""
    create(str(tmp_path / "s"), ManualClock())
    (tmp_path / "link").symlink_to("s")
    before = sorted(os.listdir(tmp_path / "s"))
    with Store.open(tmp_path / "s") as store:
        attempts = (
            store.maintenance.backup_store,
            lambda place: Store.restore(tmp_path / "s", place),
            Store.create,
        )
        for attempt in attempts:
            with pytest.raises(InvalidValue, match="lies inside the store"):
                attempt(tmp_path / inside)
    assert sorted(os.listdir(tmp_path / "s")) == before


def occupied(path: Path, kind: str) -> None:
    """Put something where a store shall be."""
    if kind == "store":
        Store.create(path)
    elif kind == "file":
        path.write_text("diary")
    elif kind == "dangling link":
        path.symlink_to("nowhere")
    else:
        path.mkdir()
        (path / "diary.txt").write_text("dear")


@pytest.mark.parametrize("kind", ["store", "file", "dangling link", "directory"])
def test_what_is_there_is_left_unchanged(tmp_path: Path, kind: str) -> None:
    """Whatever it is."""
    path = tmp_path / "s"
    occupied(path, kind)
    for attempt in (check_free, lambda where: create(where, ManualClock())):
        with pytest.raises(AlreadyExists, match="exists already and was left unchanged"):
            attempt(str(path))
    assert os.listdir(tmp_path) == ["s"]


def test_a_killed_builders_files_do_not_count(tmp_path: Path) -> None:
    """Its lock files, moved before the data file; the new store takes their place."""
    Store.create(tmp_path / "s")
    (tmp_path / "s" / "data.mdb").unlink()
    check_free(str(tmp_path / "s"))
    (tmp_path / "s" / "store.lock").write_bytes(b"something else")
    with pytest.raises(AlreadyExists):
        check_free(str(tmp_path / "s"))


def test_a_path_through_a_file_is_no_path(tmp_path: Path) -> None:
    """And says so."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreInvalid, match="a part of the path is a file"):
        create(str(tmp_path / "file" / "s"), ManualClock())


def test_what_is_not_installed_is_gone(tmp_path: Path) -> None:
    """A store is there whole, or not at all."""
    with building(str(tmp_path / "s")) as build_dir:
        Path(build_dir, "data.mdb").touch()
    assert os.listdir(tmp_path) == []
    with building(str(tmp_path / "s")) as build_dir:
        Path(build_dir, "data.mdb").write_bytes(b"whole")
        install(build_dir, str(tmp_path / "s"))
    assert (tmp_path / "s" / "data.mdb").read_bytes() == b"whole"
