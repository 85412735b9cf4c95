"""The walk over the pages of a data file: no sound file is damaged, and no flipped bit in the structure is missed."""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path

import pytest

from storage import Store
from storage.disk.lmdb.page_layout import PageFile
from storage.disk.lmdb.pages import check_pages, check_top_pages
from storage.errors import CorruptStore

PAGE_BYTES = 4096


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A store with trees of several levels, overflow pages and free pages; closed."""
    path = str(tmp_path / "store")
    Store.create(path)
    with Store.open(path) as opened:
        opened.create_table("a")
        opened.create_topic("t")
        table, producer = opened.table("a"), opened.create_producer("t")
        for number in range(4):
            table.import_rows(
                [(b"%05d" % key, b"x" * (key % 300)) for key in range(number, 2000, number + 1)]
            )
            producer.send(b"large" * 3000)
        table.import_rows([(b"%05d" % key, None) for key in range(500)])
        opened.maintenance.collect_garbage(trust_clock=True)
    return path


def damage(path: str, commit: int, *, or_none: bool = False) -> list[tuple[int, str]]:
    """The damage that the walk finds: pages, and words."""
    found: list[tuple[int, str]] = []
    is_sound = check_pages(path, commit, lambda page, message: found.append((page, message)))
    assert is_sound is (not found) or (or_none and is_sound is None)
    return found


def commit_of(path: str) -> int:
    """The number of the newest commit."""
    with Store.open(path, read_only=True) as opened, opened.connection.view() as view:
        return view.commit


def flipped(data: bytes, offset: int, bit: int) -> bytes:
    """The bytes with one bit flipped."""
    return data[:offset] + bytes([data[offset] ^ 1 << bit]) + data[offset + 1 :]


def test_a_sound_file_has_no_damage(path: str) -> None:
    """Trees of three levels, overflow pages and free pages."""
    commit = commit_of(path)
    assert damage(path, commit) == []
    check_top_pages(path)


def test_a_commit_that_was_overwritten_is_no_damage(path: str) -> None:
    """The meta page of the commit before the last but one is gone."""
    commit = commit_of(path)
    assert check_pages(path, commit - 2, lambda *found: pytest.fail(str(found))) is None


def in_use(path: str) -> list[int]:
    """The pages of the tree of rows, of all kinds."""
    data = Path(path, "data.mdb").read_bytes()
    return [
        page
        for page in range(2, len(data) // PAGE_BYTES)
        if int.from_bytes(data[page * PAGE_BYTES + 10 : page * PAGE_BYTES + 12], "little") in (1, 2, 4)
    ]


def is_in_tree(path: str, data: bytes, page: int, commit: int) -> bool:
    """Whether a page is part of the commit: then zeros there are damage."""
    file = Path(path, "data.mdb")
    file.write_bytes(data[: page * PAGE_BYTES] + bytes(PAGE_BYTES) + data[(page + 1) * PAGE_BYTES :])
    found = damage(path, commit)
    file.write_bytes(data)
    return bool(found)


def test_each_flip_in_the_structure_of_a_page_is_found(path: str) -> None:
    """Page number, flags, bounds, offsets of nodes, their lengths and flags; not the unused two bytes of the header."""
    commit, chance = commit_of(path), random.Random(1)
    file = Path(path, "data.mdb")
    data = file.read_bytes()
    pages = [page for page in chance.sample(in_use(path), 25) if is_in_tree(path, data, page, commit)]
    assert len(pages) > 10
    for page in pages:
        begin = page * PAGE_BYTES
        is_overflow = data[begin + 10] == 4
        places = [*range(8), *range(10, 16)]
        if not is_overflow:
            places += range(16, min(40, int.from_bytes(data[begin + 12 : begin + 14], "little")))
            node = int.from_bytes(data[begin + 16 : begin + 18], "little")
            places += [node + 6, node + 7] if data[begin + 10] == 2 else []
        for place in places:
            bit = chance.randrange(8)
            file.write_bytes(flipped(data, begin + place, bit))
            assert damage(path, commit), (page, place, bit)
    file.write_bytes(data)


@pytest.mark.parametrize("page", [0, 1])
def test_each_flip_of_a_commit_number_is_found(path: str, page: int) -> None:
    """LMDB would go on from there. One bit alone makes the newest page the older of two that still fit together."""
    file = Path(path, "data.mdb")
    data = file.read_bytes()
    newest = commit_of(path)
    for bit in range(64):
        if page == newest % 2 and newest ^ 1 << bit == newest - 2:
            continue  # as after an interrupted commit, whose pages lie in the trees of the older one
        changed = flipped(data, page * PAGE_BYTES + 144 + bit // 8, bit % 8)
        file.write_bytes(changed)
        opened = max(int.from_bytes(changed[at : at + 8], sys.byteorder) for at in (144, PAGE_BYTES + 144))
        assert damage(path, opened), bit
        with pytest.raises(CorruptStore):
            check_top_pages(path)
    file.write_bytes(data)


def test_a_page_that_is_free_and_in_use_is_found(path: str) -> None:
    """The next writer would write over it."""
    commit = commit_of(path)
    data = Path(path, "data.mdb").read_bytes()
    meta = PAGE_BYTES * (commit % 2)
    root = int.from_bytes(data[meta + 16 + 24 + 40 : meta + 16 + 24 + 48], "little") * PAGE_BYTES
    node = root + int.from_bytes(data[root + 16 : root + 18], "little")
    listed = node + 16 + 8  # node header and key, then the count, then the pages
    main_root = data[meta + 16 + 72 + 40 : meta + 16 + 72 + 48]
    Path(path, "data.mdb").write_bytes(data[:listed] + main_root + data[listed + 8 :])
    assert [words for _, words in damage(path, commit)] == [
        "it is listed as free, and is in use or listed twice"
    ]


def test_a_writer_meanwhile_is_no_damage(path: str) -> None:
    """The check before opening holds no view: pages change under it, and commits go on."""
    with Store.open(path) as opened:
        producer, done = opened.create_producer("t"), threading.Event()

        def write() -> None:
            while not done.is_set():
                producer.send(b"x" * 500)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(50):
                check_top_pages(path)
                with opened.connection.view() as view:
                    assert damage(path, view.commit, or_none=True) == []
        finally:
            done.set()
            writer.join()


def test_commits_between_the_looks_at_the_meta_pages_are_no_damage(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow look at both meta pages of a busy store sees pages that never stood beside each other."""
    read, commits = PageFile.read, [3, 3]
    with Store.open(path) as opened:
        producer = opened.create_producer("t")

        def slow(self: PageFile, page: int, length: int | None = None, offset: int = 0) -> bytes:
            if page == 1 and commits:
                for _ in range(commits.pop()):
                    producer.send(b"x")
            return read(self, page, length, offset)

        monkeypatch.setattr(PageFile, "read", slow)
        with opened.connection.view() as view:
            assert damage(path, view.commit, or_none=True) == []
        assert commits == []


def test_damage_is_not_copied(path: str, tmp_path: Path) -> None:
    """A backup names the page, and leaves nothing."""
    commit = commit_of(path)
    file = Path(path, "data.mdb")
    data = file.read_bytes()
    page = next(page for page in in_use(path)[10:] if is_in_tree(path, data, page, commit))
    file.write_bytes(data[: page * PAGE_BYTES] + bytes(PAGE_BYTES) + data[(page + 1) * PAGE_BYTES :])
    with Store.open(path, read_only=True) as opened, pytest.raises(CorruptStore, match=f"page {page} of"):
        opened.maintenance.backup_store(tmp_path / "backup")
    assert not os.path.exists(tmp_path / "backup")
