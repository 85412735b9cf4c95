"""Room ahead of commits: the file grows by whole chunks of zeros, and only when the room is spent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.disk.lmdb.preallocation import CHUNK_BYTES, Preallocation


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A data file with a thousand bytes in use."""
    path = tmp_path / "data"
    path.write_bytes(b"x" * 1000)
    return path


def test_room_is_made_in_whole_chunks_behind_what_is_used(file: Path) -> None:
    """What is there stays as it is."""
    room = Preallocation(str(file))
    room.left -= 10
    assert room.left < 0
    room.provide(1000, 10)
    data = file.read_bytes()
    assert len(data) == 1000 + CHUNK_BYTES
    assert data[:1000] == b"x" * 1000
    assert not data[1000:].strip(b"\0")
    room.close()


def test_no_look_is_needed_until_the_room_is_spent(file: Path) -> None:
    """The caller counts by `left` alone."""
    room = Preallocation(str(file))
    room.left -= 1
    room.provide(1000, 1)
    left = CHUNK_BYTES - 1
    room.left -= left
    assert not room.left < 0
    room.left -= 1
    assert room.left < 0
    room.close()


def test_a_large_need_is_met_at_once(file: Path) -> None:
    """By as many chunks as it takes."""
    room = Preallocation(str(file))
    room.provide(1000, 3 * CHUNK_BYTES + 1)
    assert file.stat().st_size == 1000 + 4 * CHUNK_BYTES
    room.close()


def test_room_that_is_there_is_not_made_again(file: Path) -> None:
    """As after another process has made some."""
    room = Preallocation(str(file))
    room.provide(1000, 1)
    size = file.stat().st_size
    room.close()
    other = Preallocation(str(file))
    other.left -= 5
    assert other.left < 0
    other.provide(1000, 5)
    assert file.stat().st_size == size
    other.close()


def test_a_file_that_cannot_be_written_is_the_commits_business(tmp_path: Path) -> None:
    """It says why; here nothing is raised, and nothing left open."""
    room = Preallocation(str(tmp_path / "missing"))
    before = len(os.listdir("/proc/self/fd"))
    room.provide(0, 1)
    assert len(os.listdir("/proc/self/fd")) == before
    room.close()
    room.close()


def test_a_cut_takes_back_what_was_added_and_nothing_else(tmp_path: Path) -> None:
    """The file gets a length that it had; a shorter file is left as it is."""
    file = tmp_path / "data"
    file.write_bytes(b"x" * 5000)
    room = Preallocation(str(file))
    before = room.file_bytes()
    room.provide(5000, 100)
    assert room.file_bytes() > before
    room.cut(before)
    assert file.read_bytes() == b"x" * 5000
    room.cut(9000)
    assert room.file_bytes() == before
