"""Check the pages of the data file without LMDB, which trusts every page: a walk over all trees of one commit.

LMDB has no checksum of a page. The checksum of a record proves the record that is found; the walk proves that the
records found are those of the commit. Every page is where its parent says, of the right kind, and in one place only;
nodes fill their page without gap or overlap; keys grow, and lie between the keys that lead to them; every database has
as many pages, levels and records as its own record counts; no page in use is in the list of free pages; and both meta
pages are of successive commits. So a flipped bit in a page either changes no answer, or is found here or by a checksum.

The walk reads the file, not the map, and checks every offset before use: no content of the file ends the process.
Pages of a commit stay as they are while a view of the commit is open (docs/decisions/0038).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from struct import unpack_from

from storage.actions import Action, Hint
from storage.disk.lmdb import directory
from storage.disk.lmdb.page_layout import (
    BIG_DATA,
    BRANCH,
    HEADER,
    INTEGER_KEYS,
    LEAF,
    LEVELS_MAX,
    NO_PAGE,
    NODE,
    OVERFLOW,
    SUB_TREE,
    TREE,
    DamagedPage,
    MetaPage,
    PageFile,
    Tree,
)
from storage.errors import CorruptStore

Report = Callable[[int, str], None]
"""Called with the number of a damaged page, and the damage."""

Progress = Callable[[str, int], None]
"""Called with the tree being walked, and the number of pages since the last call."""

Take = Callable[[bytes, bytes, int], None]
"""Called with key, data and flags of a record."""

_PROBLEMS_MAX = 100
_PROGRESS_PAGES = 1000
_TRIES = 100
_FREE, _MAIN = "the free pages", "the databases"


def check_pages(
    path: str, commit: int, report: Report, progress: Progress | None = None, *, full: bool = True
) -> bool | None:
    """Check every page of a commit, of which the caller holds a view.

    Args:
        path: the directory of the store.
        commit: the number of the commit (`ReadView.commit`).
        full: check all pages, and not the meta pages alone.

    Returns:
        Whether the pages are sound; None where later commits have overwritten the meta page of this commit.
    """
    with open(os.path.join(path, directory.DATA), "rb", buffering=0) as file:
        walk = _PageCheck(PageFile(file.fileno()), report, progress)
        metas = walk.read_metas()
        meta = next((meta for meta in metas if meta.commit == commit), None)
        if meta is not None:
            if full:
                walk.run(metas, meta)
            else:
                walk.check_commits(metas)
        return None if meta is None and not walk.problems else not walk.problems


def check_top_pages(path: str) -> None:
    """Check the pages that LMDB reads when it opens a file: the meta pages, and the tree of the databases.

    There is no view yet, so the pages may change in the middle: a page of the newest commit is overwritten after two
    further commits at the earliest. So damage is damage if the newest commit is still the same after the look.

    Raises:
        CorruptStore
    """
    with open(os.path.join(path, directory.DATA), "rb", buffering=0) as file:
        seen: int | None = None
        damage: list[tuple[int, str]] = []
        for _ in range(_TRIES):
            newest, before = seen, damage
            damage = []
            walk = _PageCheck(PageFile(file.fileno()), lambda *damaged: damage.append(damaged), None)  # noqa: B023
            metas = walk.read_metas()
            seen = max((meta.commit for meta in metas), default=-1)
            if metas:
                walk.run_top(metas, max(metas, key=lambda meta: meta.commit))
            if not damage:
                return
            if seen == newest and damage == before:
                raise damaged_page(path, *damage[0])


def damaged_page(path: str, page: int, message: str) -> CorruptStore:
    """The error for a damaged page of the data file."""
    return CorruptStore(
        f"page {page} of {path} is damaged: {message}",
        hint=Hint("Run `{}`, then restore a backup.", Action("store.maintenance.verify_store", full=True)),
        page=page,
    )


class _PageCheck:
    """The check of one commit.

    Attributes:
        problems: the number of problems so far.
    """

    def __init__(self, file: PageFile, report: Report, progress: Progress | None) -> None:
        self._file = file
        self._report = report
        self._progress = progress
        self.problems = 0
        self._in_use = bytearray()
        self._free: list[int] = []
        self._done = 0

    def _problem(self, page: int, message: str) -> None:
        self.problems += 1
        if self.problems <= _PROBLEMS_MAX:
            self._report(page, message)

    # Meta pages

    def read_metas(self) -> tuple[MetaPage, ...]:
        """Both meta pages; none where they are damaged."""
        try:
            return self._file.meta_pages()
        except DamagedPage as damage:
            self._problem(damage.page or 0, str(damage))
            return ()

    def check_commits(self, metas: tuple[MetaPage, ...]) -> bool:
        """Check that the newest meta page is of the commit that it says; see `PageFile.check_commit`.

        The trees of the older one may be gone: a commit that was interrupted has written its pages there.
        """
        number, newest = max(enumerate(metas), key=lambda numbered: numbered[1].commit)
        try:
            self._file.check_commit(number, newest)
        except DamagedPage as damage:
            self._problem(damage.page or 0, str(damage))
            return False
        return True

    # Trees

    def run_top(self, metas: tuple[MetaPage, ...], meta: MetaPage) -> None:
        """Walk over the tree of the databases alone. A file that is too short is found where the file is opened."""
        if meta.last_page >= self._file.pages or not self.check_commits(metas):
            return
        self._begin(meta)
        if meta.main.flags:
            return  # no store: LMDB has files of other kinds
        databases: list[tuple[bytes, bytes, int]] = []
        self._tree(_MAIN, meta.main, 0, lambda *record: databases.append(record))
        for name, data, flags in databases:
            if not flags & SUB_TREE:
                continue  # no store, or a database that opening misses
            tree = Tree(*TREE.unpack(data)) if len(data) == TREE.size else None
            if tree is None or tree.flags or (tree.root != NO_PAGE and not 1 < tree.root <= meta.last_page):
                self._problem(meta.main.root, f"the record of {_label(name)} is damaged")

    def _begin(self, meta: MetaPage) -> bool:
        """Begin with no page in use; False where the file is shorter than the meta page says."""
        if meta.last_page >= self._file.pages:
            self._problem(0, f"the last page is {meta.last_page}, and the file has {self._file.pages} pages")
            return False
        self._in_use = bytearray(meta.last_page + 1)
        self._in_use[0:2] = b"\1\1"
        return True

    def run(self, metas: tuple[MetaPage, ...], meta: MetaPage) -> None:
        """Walk over all trees, then compare the pages in use with the list of free pages."""
        if not self._begin(meta) or not self.check_commits(metas):
            return
        self._tree(_FREE, meta.free, INTEGER_KEYS, self._note_free)
        databases: list[tuple[bytes, bytes, int]] = []
        self._tree(_MAIN, meta.main, 0, lambda *record: databases.append(record))
        for name, data, flags in databases:
            if not flags & SUB_TREE:
                self._problem(meta.main.root, f"{_label(name)} is no database")
                continue
            self._sub_tree(name, data)
        for number in self._free:
            if not 1 < number <= meta.last_page:
                self._problem(number, "it is listed as free, and does not exist")
            elif self._in_use[number]:
                self._problem(number, "it is listed as free, and is in use or listed twice")
            else:
                self._in_use[number] = 1

    def _sub_tree(self, name: bytes, data: bytes) -> None:
        label = _label(name)
        if len(data) != TREE.size:
            self._problem(0, f"{label} has a record of {len(data)} bytes")
            return
        self._tree(label, Tree(*TREE.unpack(data)), 0, None)

    def _note_free(self, _: bytes, data: bytes, __: int) -> None:
        count = int.from_bytes(data[:8], sys.byteorder)
        if len(data) < 8 * (count + 1):
            self._problem(0, f"a list of {count} free pages has {len(data)} bytes")
            return
        self._free += unpack_from(f"={count}Q", data, 8)

    def _tree(self, name: str, tree: Tree, flags: int, take: Take | None) -> None:
        walk = _TreeCheck(name, flags, take)
        if tree.flags != flags:
            self._problem(0, f"{name}: flags are {tree.flags:#x}, not {flags:#x}")
        elif tree.root != NO_PAGE and 0 < tree.levels <= LEVELS_MAX:
            self._page(walk, tree.root, tree.levels, None, None)
        counted = (walk.branch_pages, walk.leaf_pages, walk.overflow_pages, walk.entries)
        recorded = (tree.branch_pages, tree.leaf_pages, tree.overflow_pages, tree.entries)
        if counted != recorded or (tree.root == NO_PAGE) != (tree.levels == 0):
            pages_there = "{} branch, {} leaf and {} overflow pages with {} records".format(*counted)
            self._problem(tree.root if tree.root != NO_PAGE else 0, (
                f"{name}: there are {pages_there}; the database counts {recorded[0]}, {recorded[1]}, {recorded[2]} and "
                f"{recorded[3]}, in {tree.levels} levels"
            ))  # fmt: skip

    # Pages

    def _take(self, walk: _TreeCheck, number: int, count: int = 1) -> None:
        """Note pages as in use.

        Raises:
            DamagedPage: a page does not exist, or is in use in a second place.
        """
        if not (number > 1 and number + count <= len(self._in_use)):
            raise DamagedPage("is referred to, and does not exist")
        if any(self._in_use[number : number + count]):
            raise DamagedPage("is referred to twice")
        self._in_use[number : number + count] = b"\1" * count
        self._done += count
        if self._progress is not None and self._done % _PROGRESS_PAGES < count:
            self._progress(f"pages of {walk.name}", 0)

    def _page(self, walk: _TreeCheck, number: int, level: int, low: bytes | None, high: bytes | None) -> None:
        """Check a page and all pages below, whose keys are from `low` on and below `high`; level 1 is the leaves."""
        try:
            self._take(walk, number)
            data = self._file.read(number)
            children = self._branch(walk, data, number, low, high) if level > 1 else None
            if children is None:
                self._leaf(walk, data, number, low, high)
                return
        except DamagedPage as damage:
            self._problem(number, f"{walk.name}: it {damage}")
            return
        walk.branch_pages += 1
        for (first, child), (following, _) in zip(children, [*children[1:], (high, 0)], strict=True):
            self._page(walk, child, level - 1, first, following)

    def _branch(
        self, walk: _TreeCheck, data: bytes, number: int, low: bytes | None, high: bytes | None
    ) -> list[tuple[bytes | None, int]]:
        """The children of a branch page, each with the lowest key that leads there.

        Raises:
            DamagedPage
        """
        children: list[tuple[bytes | None, int]] = []
        extents = []
        previous = low
        for offset in self._file.offsets(data, number, BRANCH):
            if offset + NODE.size > self._file.page_bytes:
                raise DamagedPage(f"has a node at {offset}")
            lowest, middle, highest, key_bytes = NODE.unpack_from(data, offset)
            end = offset + NODE.size + key_bytes
            extents.append((offset, end))
            key: bytes | None = walk.sortable(data[offset + NODE.size : end])
            if not children:
                key = low  # The first key leads nowhere, and is not compared.
            elif (
                key is None
                or (previous is not None and key <= previous)
                or (high is not None and key >= high)
            ):
                raise DamagedPage("has keys out of order")
            previous = key
            children.append((key, lowest | middle << 16 | highest << 32))
        self._file.check_filled(data, extents)
        if len(children) < 2:
            raise DamagedPage("has fewer than two children")
        return children

    def _leaf(
        self, walk: _TreeCheck, data: bytes, number: int, low: bytes | None, high: bytes | None
    ) -> None:
        offsets = self._file.offsets(data, number, LEAF)
        walk.leaf_pages += 1
        extents, previous, room = [], b"", self._file.page_bytes - NODE.size
        is_first, allowed = True, SUB_TREE | BIG_DATA if walk.name == _MAIN else BIG_DATA
        for offset in offsets:
            if offset > room:
                raise DamagedPage(f"has a node at {offset}")
            lowest, highest, flags, key_bytes = NODE.unpack_from(data, offset)
            begin = offset + NODE.size + key_bytes
            length = lowest | highest << 16
            end = begin + (8 if flags & BIG_DATA else length)
            key = data[offset + NODE.size : begin]
            if flags & ~allowed or end > self._file.page_bytes or not key:
                raise DamagedPage(f"has a node of {key_bytes} and {length} bytes with flags {flags:#x}")
            key = walk.sortable(key)
            if (
                (not is_first and key <= previous)
                or (low is not None and key < low)
                or (high is not None and key >= high)
            ):
                raise DamagedPage("has keys out of order")
            extents.append((offset, end))
            previous, is_first = key, False
            content = b""
            if flags & BIG_DATA:
                content = self._overflow(walk, int.from_bytes(data[begin:end], sys.byteorder), length)
            if walk.take is not None:
                walk.take(key, content or data[begin:end], flags)
        walk.entries += len(extents)
        self._file.check_filled(data, extents)

    def _overflow(self, walk: _TreeCheck, number: int, length: int) -> bytes:
        """Check the overflow pages of a record; return the content where the walk takes it.

        Raises:
            DamagedPage
        """
        if not 1 < number < len(self._in_use):
            raise DamagedPage(f"has a record on page {number}, which does not exist")
        header = self._file.read(number, HEADER.size)
        page, _, flags, _, _ = HEADER.unpack(header)
        pages = int.from_bytes(header[12:16], sys.byteorder)
        # A record that became shorter in its transaction keeps its pages.
        if (page, flags) != (number, OVERFLOW) or pages * self._file.page_bytes < HEADER.size + length:
            raise DamagedPage(
                f"has a record on page {number}, which says {page}, {pages} pages and {flags:#x}"
            )
        try:
            self._take(walk, number, pages)
        except DamagedPage as damage:
            raise DamagedPage(f"has a record on page {number}, which {damage}") from None
        walk.overflow_pages += pages
        if walk.take is None:
            return b""
        return self._file.read(number, length, HEADER.size)


def _label(name: bytes) -> str:
    return f"database {name.decode('ascii', 'backslashreplace')}"


class _TreeCheck:
    """The counts of the walk over one tree.

    Attributes:
        take: called with every record; None where no record is needed.
    """

    __slots__ = ("branch_pages", "entries", "flags", "leaf_pages", "name", "overflow_pages", "take")

    def __init__(self, name: str, flags: int, take: Take | None) -> None:
        self.name = name
        self.flags = flags
        self.take = take
        self.branch_pages = self.leaf_pages = self.overflow_pages = self.entries = 0

    def sortable(self, key: bytes) -> bytes:
        """The key as bytes that sort as the keys of the tree: numbers are stored in the order of the machine."""
        return key[::-1] if self.flags & INTEGER_KEYS and sys.byteorder == "little" else key
