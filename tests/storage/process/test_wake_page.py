"""The wake page: mapped where that is possible, and otherwise done without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from storage.process import futex
from storage.process.wake_page import COMMITS, QUEUED, WATCHED, WakePage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A lock file as earlier releases leave it."""
    path = tmp_path / "store.lock"
    path.write_bytes(b"txnctl".ljust(80))
    return path


def test_a_writer_makes_the_page_of_an_earlier_release(path: Path) -> None:
    """The text and the signature stay; a reader maps the page afterwards."""
    reader, writer = WakePage(str(path)), WakePage(str(path))
    assert not reader.map(makes=False)
    assert path.stat().st_size == 80, "a reader makes nothing"
    assert writer.map(makes=True)
    assert path.read_bytes() == b"txnctl".ljust(80) + bytes(4096 - 80)
    assert reader.map(makes=False)
    for page in (reader, writer):
        page.close()


def test_every_byte_has_room_on_the_disk(path: Path) -> None:
    """A copy of files may leave holes, and a page without room would kill the process at its first change."""
    os.truncate(path, 0)
    os.truncate(path, 4096)
    page = WakePage(str(path))
    assert path.stat().st_blocks == 0
    assert not page.map(makes=False)
    assert page.map(makes=True)
    assert path.stat().st_blocks * 512 >= 4096
    page.close()


def test_before_the_first_wait_the_gate_is_entered_the_slow_way_and_no_commit_is_announced(
    path: Path,
) -> None:
    """The slow way maps the page; without a page both ways are those of a gate without a queue."""
    page = WakePage(str(path))
    assert (page.words[QUEUED], page.words[WATCHED]) == (1, 0)
    page.map(makes=True)
    assert (page.words[QUEUED], page.words[WATCHED]) == (0, 0)
    page.close()
    assert (page.words[QUEUED], page.words[WATCHED]) == (0, 0)
    assert not page.map(makes=True), "closed is closed"


@pytest.mark.parametrize("hindrance", ["missing", "link", "directory", "no call", "no room"])
def test_what_stands_in_the_way_leaves_no_page(
    path: Path, monkeypatch: pytest.MonkeyPatch, hindrance: str
) -> None:
    """Waits then sleep."""

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if hindrance == "no call":
        monkeypatch.setattr(futex, "is_available", lambda: False)
    elif hindrance == "no room":
        monkeypatch.setattr(os, "posix_fallocate", no_room)
    else:
        path.rename(path.with_name("elsewhere"))
        if hindrance == "link":
            path.symlink_to("elsewhere")
        elif hindrance == "directory":
            path.mkdir()
    page = WakePage(str(path))
    assert not page.map(makes=True)
    assert not page.is_mapped
    page.close()


def test_a_commit_changes_the_word_of_all_maps_once_asked_for(path: Path) -> None:
    """The one who watches has read the word before, so a change is not missed."""
    watcher, writer = WakePage(str(path)), WakePage(str(path))
    writer.map(makes=True)
    watcher.map(makes=False)
    seen = watcher.watch_commits()
    assert seen is not None
    assert writer.words[WATCHED]
    writer.announce_commit()
    assert not watcher.words[WATCHED]
    assert watcher.words[COMMITS] != seen
    assert futex.wait(watcher.word_address(COMMITS), seen, 30)
    for page in (watcher, writer):
        page.close()


def test_a_page_closed_by_another_thread_is_not_watched(path: Path) -> None:
    """A handle for reading gives its page up when one for writing joins, beside a thread that waits for a commit."""
    page = WakePage(str(path))
    page.map(makes=True)
    page.close()
    assert page.watch_commits() is None
