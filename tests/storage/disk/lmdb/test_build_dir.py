"""Build directories: gone at the end unless renamed, and removed when their builder is dead, never before."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from storage.disk.lmdb.build_dir import build_directory, is_build_dir


def test_it_lies_beside_its_destination_and_is_private(tmp_path: Path) -> None:
    """And is gone when the block ends."""
    with build_directory(str(tmp_path / "s")) as built:
        assert os.path.dirname(built) == str(tmp_path)
        assert is_build_dir(os.path.basename(built), "s")
        assert os.stat(built).st_mode & 0o777 == 0o700
        Path(built, "data.mdb").write_bytes(b"half")
    assert os.listdir(tmp_path) == []


def test_what_was_renamed_stays(tmp_path: Path) -> None:
    """That is how it is installed."""
    with build_directory(str(tmp_path / "s")) as built:
        Path(built, "data.mdb").write_bytes(b"whole")
        os.rename(built, tmp_path / "s")
    assert (tmp_path / "s" / "data.mdb").read_bytes() == b"whole"
    assert os.listdir(tmp_path) == ["s"]


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    """The error comes through."""

    def fail() -> None:
        with build_directory(str(tmp_path / "s")) as built:
            Path(built, "lock.mdb").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(tmp_path) == []


def left_behind(parent: Path, name: str, *files: str) -> Path:
    """A build directory of a process that is gone."""
    path = parent / name
    path.mkdir()
    for file in files:
        (path / file).touch()
    return path


def test_leftovers_of_the_dead_are_removed(tmp_path: Path) -> None:
    """Whatever they were to become, with nothing but files of a store in them."""
    dead = left_behind(tmp_path, ".s.1234567.new", "data.mdb", "store.lock")
    other = left_behind(tmp_path, ".t.1234567.new", "data.mdb", "reads.cache")
    foreign = left_behind(tmp_path, ".s.7654321.new", "data.mdb", "diary.txt")
    with build_directory(str(tmp_path / "s")):
        assert not dead.exists()
        assert not other.exists()
        assert foreign.exists()


def test_an_empty_directory_is_a_leftover_of_its_own_destination_only(tmp_path: Path) -> None:
    """A builder killed at once leaves one; of a different name, anybody may have made it."""
    own, other = left_behind(tmp_path, ".s.1234567.new"), left_behind(tmp_path, ".t.1234567.new")
    with build_directory(str(tmp_path / "s")):
        assert not own.exists()
        assert other.exists()


def test_a_living_builder_is_left_alone(tmp_path: Path) -> None:
    """Its lock tells; its pid, which is nobody's, would not."""
    living = left_behind(tmp_path, ".s.1234567.new", "data.mdb")
    descriptor = os.open(living, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with build_directory(str(tmp_path / "s")):
            assert living.exists()
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        (".s.1.new", True),
        (".s.x.new", False),
        ("s.1.new", False),
        (".s.1.newer", False),
        (".ss.1.new", False),
        (".s+.1.new", False),
    ],
)
def test_names(name: str, is_one: bool) -> None:
    """Signs of the destination's name stand for themselves."""
    assert is_build_dir(name, "s") is is_one
    assert is_build_dir(".s+.1.new", "s+")
