"""Every store that is made is on disk before it has its name, and the name is on disk before that is reported.

The calls of the system are watched, not replaced: files are synced and renamed as always.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import Store

Content = tuple[int, int]
"""Size and time of the last write, in nanoseconds."""


def content_of(path: str) -> Content:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


class Watch:
    """The files and directories synced, with their content at that time, and what was renamed unsynced."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.synced: dict[str, Content] = {}
        self.renamed: list[str] = []
        self.too_early: list[str] = []
        self._fsync, self._rename = os.fsync, os.rename
        monkeypatch.setattr(os, "fsync", self.fsync)
        monkeypatch.setattr(os, "rename", self.rename)

    def fsync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        self._fsync(descriptor)
        self.synced[path] = content_of(path)

    def rename(self, source: str, target: str) -> None:
        inside = [os.path.join(source, name) for name in os.listdir(source)] if os.path.isdir(source) else []
        for path in (os.path.realpath(source), *map(os.path.realpath, inside)):
            if self.synced.get(path) != content_of(path):
                self.too_early.append(path)
        self._rename(source, target)
        self.renamed.append(target)
        self.synced.pop(os.path.dirname(os.path.realpath(target)), None)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Watches from here on."""
    watched = Watch(monkeypatch)
    yield watched
    monkeypatch.undo()


def make(store: Store, place: Path) -> None:
    Store.create(place)


def back_up(store: Store, place: Path) -> None:
    store.maintenance.backup_store(place)


def restore(store: Store, place: Path) -> None:
    Store.restore(store.path, place)


@pytest.mark.parametrize("copy", [make, back_up, restore])
@pytest.mark.parametrize("inside", ["new", "empty", "a/b/c"])
def test_a_new_store_is_synced_before_it_has_its_name(
    store: Store, tmp_path: Path, watch: Watch, copy: Callable[[Store, Path], None], inside: str
) -> None:
    """Each file, the directory with their names, after the rename the directory above, and new directories above that."""
    store.create_producer("t").send_batch([b"x" * 1000] * 2000)
    (tmp_path / "empty").mkdir()
    place = tmp_path / inside
    copy(store, place)
    assert watch.too_early == []
    assert watch.renamed[-1] == str(place / "data.mdb" if inside == "empty" else place)
    changed = {
        "new": [tmp_path],
        "empty": [place],
        "a/b/c": [tmp_path, tmp_path / "a", tmp_path / "a" / "b"],
    }
    assert [each for each in changed[inside] if str(each) not in watch.synced] == []


def test_a_compacted_file_is_synced_before_it_takes_the_place_of_the_old_one(
    store: Store, watch: Watch
) -> None:
    """And its name after that."""
    store.create_producer("t").send_batch([b"x" * 1000] * 2000)
    store.maintenance.compact_store()
    assert watch.too_early == []
    assert watch.renamed == [os.path.join(store.path, "data.mdb")]
    assert store.path in watch.synced
