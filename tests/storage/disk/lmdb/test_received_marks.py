"""The file of received marks: what is not whole, or not of this store, is no mark."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from storage.disk.lmdb.received_marks import FILE_NAME, SLOTS, MarksFile
from storage.disk.superblock import Superblock
from storage.process.clock import ManualClock
from storage.values.position import MessageId

CLOCK = ManualClock()
LAST = MessageId(7, 8, 9)


def head_of(store_id: bytes = b"0123456789abcdef", incarnation: int = 1) -> Superblock:
    head = Superblock(store_id, CLOCK)
    head.incarnation = incarnation
    return head


def prepared(directory: Path) -> MarksFile:
    marks = MarksFile(str(directory))
    assert marks.prepare(head_of())
    return marks


def test_a_mark_is_seen_by_every_process(tmp_path: Path) -> None:
    """The latest of one window; of no other window and no other consumer."""
    writer, reader, head = prepared(tmp_path), MarksFile(str(tmp_path)), head_of()
    assert writer.last(head, 5, 1) is None
    for index in range(10):
        writer.note(5, 1, MessageId(7, 8, index))
        for marks in (writer, reader):
            assert marks.last(head, 5, 1) == MessageId(7, 8, index)
    assert reader.last(head, 5, 2) is reader.last(head, 6, 1) is None
    writer.note(5, 2, MessageId(1, 0, 0))
    assert reader.last(head, 5, 2) == MessageId(1, 0, 0)
    writer.close()
    writer.note(5, 2, LAST)
    assert reader.last(head, 5, 2) == MessageId(1, 0, 0)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_a_mark_of_a_different_store_or_incarnation_is_none(tmp_path: Path) -> None:
    """A restored copy counts consumers and windows anew."""
    marks = prepared(tmp_path)
    marks.note(5, 1, LAST)
    assert marks.last(head_of(b"another store id"), 5, 1) is None
    assert marks.last(head_of(incarnation=2), 5, 1) is None


def test_half_a_mark_leaves_the_one_before(tmp_path: Path) -> None:
    """Each mark is written over the last but one; every byte of it is covered by the checksum."""
    marks, path = prepared(tmp_path), tmp_path / FILE_NAME
    marks.note(5, 1, MessageId(1, 1, 1))
    before = path.read_bytes()
    marks.note(5, 1, LAST)
    after = path.read_bytes()
    changed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    for torn in range(changed[0], changed[-1] + 1):
        path.write_bytes(after[:torn] + before[torn:])
        assert MarksFile(str(tmp_path)).last(head_of(), 5, 1) in (MessageId(1, 1, 1), LAST)
    path.write_bytes(after)
    assert MarksFile(str(tmp_path)).last(head_of(), 5, 1) == LAST


def test_consumers_with_one_slot_overwrite_each_other(tmp_path: Path) -> None:
    """Neither is given the mark of the other."""
    marks = prepared(tmp_path)
    for _ in range(2):
        marks.note(5, 1, LAST)
    for _ in range(2):
        marks.note(5 + SLOTS, 1, MessageId(1, 1, 1))
    assert marks.last(head_of(), 5, 1) is None
    assert marks.last(head_of(), 5 + SLOTS, 1) == MessageId(1, 1, 1)


@pytest.mark.parametrize("kind", ["absent", "link", "shared", "writable", "short", "folder"])
def test_a_file_that_cannot_be_trusted_holds_no_marks(tmp_path: Path, kind: str) -> None:
    """Nothing fails: consumers work without marks."""
    path, other = tmp_path / FILE_NAME, tmp_path / "other"
    directory = tmp_path / "store"
    directory.mkdir()
    prepared(tmp_path).note(5, 1, LAST)
    if kind in ("link", "shared"):
        os.rename(path, other)
        (os.symlink if kind == "link" else os.link)(other, path)
    elif kind == "writable":
        path.chmod(0o666)
    elif kind == "short":
        os.truncate(path, 100)
    elif kind == "absent":
        path.unlink()
    else:
        path.unlink()
        path.mkdir()
    marks = MarksFile(str(tmp_path))
    assert marks.last(head_of(), 5, 1) is None
    assert marks.prepare(head_of()) is (kind in ("absent", "short"))


def test_since_when_a_consumer_is_quiet_is_seen_by_every_process(tmp_path: Path) -> None:
    """The latest time, of that consumer, store and incarnation; beside the marks; half of one is none."""
    writer, reader, head = prepared(tmp_path), MarksFile(str(tmp_path)), head_of()
    assert reader.quiet_since_ns(head, 5) is None
    writer.note(5, 1, LAST)
    writer.note_quiet(5, 7)
    writer.note_quiet(5, 1 << 62)
    for marks in (writer, reader):
        assert marks.quiet_since_ns(head, 5) == 1 << 62
        assert marks.quiet_since_ns(head, 5 + SLOTS) is None
        assert marks.quiet_since_ns(head_of(incarnation=2), 5) is None
        assert marks.last(head, 5, 1) == LAST
    content = bytearray((tmp_path / FILE_NAME).read_bytes())
    content[SLOTS * 96 + 5 * 24 + 9] ^= 1
    (tmp_path / FILE_NAME).write_bytes(content)
    assert reader.quiet_since_ns(head, 5) is None


def test_a_file_of_an_earlier_release_has_marks_and_no_times(tmp_path: Path) -> None:
    """It is shorter, and grows with the first consumer of this release."""
    writer, head = prepared(tmp_path), head_of()
    writer.note(5, 1, LAST)
    writer.close()
    os.truncate(tmp_path / FILE_NAME, SLOTS * 96)
    reader = MarksFile(str(tmp_path))
    assert reader.last(head, 5, 1) == LAST
    assert reader.quiet_since_ns(head, 5) is None
    grown = prepared(tmp_path)
    grown.note_quiet(5, 7)
    assert reader.quiet_since_ns(head, 5) == 7
    assert reader.last(head, 5, 1) == LAST
