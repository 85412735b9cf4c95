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
from struct import Struct, unpack_from

from storage.actions import Action, Hint
from storage.disk import directory
from storage.errors import CorruptStore
from storage.values.named_tuple import NamedTuple

Report = Callable[[int, str], None]
"""Called with the number of a damaged page, and the damage."""

Progress = Callable[[str, int], None]
"""Called with the tree being walked, and the number of pages since the last call."""

_HEADER = Struct("=QHHHH")
"""Page number, padding, flags, end of the node offsets, begin of the nodes; of an overflow page a u32 count."""
_NODE = Struct("=HHHH")
"""Of a leaf: length of the data in two halves, flags, length of the key. Of a branch: page number in three parts."""
_TREE = Struct("=IHHQQQQQ")
_META = Struct("=IIQQ48s48sQQ")

_BRANCH, _LEAF, _OVERFLOW, _META_PAGE = 1, 2, 4, 8
_BIG_DATA, _SUB_TREE = 1, 2
_INTEGER_KEYS = 8
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_NO_PAGE = (1 << 64) - 1
_PROBLEMS_MAX = 100
_LEVELS_MAX = 32
_PROGRESS_PAGES = 1000
_TRIES = 100
_FREE, _MAIN = "the free pages", "the databases"


class _Tree(NamedTuple):
    """LMDB's record of one B-tree."""

    padding: int
    flags: int
    levels: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class _Meta(NamedTuple):
    """A meta page: the trees of one commit, free pages first."""

    free: _Tree
    main: _Tree
    last_page: int
    commit: int


class _Damaged(Exception):
    """A page that cannot be read any further."""


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
        walk = _Walk(file.fileno(), report, progress)
        meta = walk.read_meta(commit)
        if meta is not None and full:
            walk.run(meta)
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
            walk = _Walk(file.fileno(), lambda page, message: damage.append((page, message)), None)  # noqa: B023
            meta = walk.read_meta(None)
            if meta is not None:
                walk.run_top(meta)
            if not damage:
                return
            seen = -1 if meta is None else meta.commit
            if seen == newest and damage == before:
                raise damaged_page(path, *damage[0])


def damaged_page(path: str, page: int, message: str) -> CorruptStore:
    """The error for a damaged page of the data file."""
    return CorruptStore(
        f"page {page} of {path} is damaged: {message}",
        hint=Hint("Run `{}`, then restore a backup.", Action("store.maintenance.verify_store", full=True)),
        page=page,
    )


class _Walk:
    """The check of one commit.

    Attributes:
        problems: the number of problems so far.
    """

    def __init__(self, descriptor: int, report: Report, progress: Progress | None) -> None:
        self._descriptor = descriptor
        self._report = report
        self._progress = progress
        self.problems = 0
        self._page_bytes = 0
        self._in_use = bytearray()
        self._free: list[int] = []
        self._done = 0

    def _problem(self, page: int, message: str) -> None:
        self.problems += 1
        if self.problems <= _PROBLEMS_MAX:
            self._report(page, message)

    # Meta pages

    def read_meta(self, commit: int | None) -> _Meta | None:
        """Check both meta pages, and return the one of a commit, None for the newest; None without one."""
        metas = [self._meta(number) for number in (0, 1)]
        if metas[0] is None or metas[1] is None:
            return None
        if commit is None:
            commit = max(metas[0].commit, metas[1].commit)
        chosen = next((meta for meta in metas if meta is not None and meta.commit == commit), None)
        commits = metas[0].commit, metas[1].commit
        is_new = commits == (0, 0)
        if not is_new and (commits[0] % 2 or not commits[1] % 2 or abs(commits[0] - commits[1]) != 1):
            self._problem(
                0, f"the meta pages are of commits {commits[0]} and {commits[1]}, not of successive ones"
            )
            return None
        if metas[0].free[:2] != metas[1].free[:2] or metas[0].main[:2] != metas[1].main[:2]:
            self._problem(0, "the meta pages differ in page size or flags")
            return None
        return chosen

    def _meta(self, number: int) -> _Meta | None:
        self._page_bytes = self._page_bytes or 4096
        data = os.pread(self._descriptor, _HEADER.size + _META.size, number * self._page_bytes)
        if len(data) < _HEADER.size + _META.size:
            self._problem(number, "the file ends before this meta page")
            return None
        page, _, flags, _, _ = _HEADER.unpack_from(data)
        magic, version, _, _, free, main, last_page, commit = _META.unpack_from(data, _HEADER.size)
        meta = _Meta(_Tree(*_TREE.unpack(free)), _Tree(*_TREE.unpack(main)), last_page, commit)
        is_meta = (page, flags, magic, version) == (number, _META_PAGE, _MAGIC, _VERSION)
        page_bytes = meta.free.padding
        if not is_meta or not 256 <= page_bytes <= 65536 or page_bytes & (page_bytes - 1):
            self._problem(number, "it is no meta page of LMDB")
            return None
        self._page_bytes = page_bytes
        return meta

    # Trees

    def run_top(self, meta: _Meta) -> None:
        """Walk over the tree of the databases alone. A file that is too short is found where the file is opened."""
        if meta.last_page >= os.fstat(self._descriptor).st_size // self._page_bytes:
            return
        self._begin(meta)
        sub_trees: list[tuple[bytes, bytes]] = []
        self._tree(_MAIN, meta.main, 0, lambda key, data: sub_trees.append((key, data)))
        for name, data in sub_trees:
            tree = _Tree(*_TREE.unpack(data)) if len(data) == _TREE.size else None
            if tree is None or tree.flags or (tree.root != _NO_PAGE and not 1 < tree.root <= meta.last_page):
                self._problem(meta.main.root, f"the record of {_label(name)} is damaged")

    def _begin(self, meta: _Meta) -> bool:
        """Begin with no page in use; False where the file is shorter than the meta page says."""
        pages_in_file = os.fstat(self._descriptor).st_size // self._page_bytes
        if meta.last_page >= pages_in_file:
            self._problem(0, f"the last page is {meta.last_page}, and the file has {pages_in_file} pages")
            return False
        self._in_use = bytearray(meta.last_page + 1)
        self._in_use[0:2] = b"\1\1"
        return True

    def run(self, meta: _Meta) -> None:
        """Walk over all trees, then compare the pages in use with the list of free pages."""
        if not self._begin(meta):
            return
        self._tree(_FREE, meta.free, _INTEGER_KEYS, self._note_free)
        sub_trees: list[tuple[bytes, bytes]] = []
        self._tree(_MAIN, meta.main, 0, lambda key, data: sub_trees.append((key, data)))
        for name, data in sub_trees:
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
        if len(data) != _TREE.size:
            self._problem(0, f"{label} has a record of {len(data)} bytes")
            return
        self._tree(label, _Tree(*_TREE.unpack(data)), 0, None)

    def _note_free(self, _: bytes, data: bytes) -> None:
        count = int.from_bytes(data[:8], sys.byteorder)
        if len(data) < 8 * (count + 1):
            self._problem(0, f"a list of {count} free pages has {len(data)} bytes")
            return
        self._free += unpack_from(f"={count}Q", data, 8)

    def _tree(self, name: str, tree: _Tree, flags: int, take: Callable[[bytes, bytes], None] | None) -> None:
        walk = _TreeWalk(name, flags, take)
        if tree.flags != flags:
            self._problem(0, f"{name}: flags are {tree.flags:#x}, not {flags:#x}")
        elif tree.root != _NO_PAGE and 0 < tree.levels <= _LEVELS_MAX:
            self._page(walk, tree.root, tree.levels, None, None)
        counted = (walk.branch_pages, walk.leaf_pages, walk.overflow_pages, walk.entries)
        recorded = (tree.branch_pages, tree.leaf_pages, tree.overflow_pages, tree.entries)
        if counted != recorded or (tree.root == _NO_PAGE) != (tree.levels == 0):
            found = "{} branch, {} leaf and {} overflow pages with {} records".format(*counted)
            self._problem(tree.root if tree.root != _NO_PAGE else 0, (
                f"{name}: there are {found}; the database counts {recorded[0]}, {recorded[1]}, {recorded[2]} and "
                f"{recorded[3]}, in {tree.levels} levels"
            ))  # fmt: skip

    # Pages

    def _take(self, walk: _TreeWalk, number: int, count: int = 1) -> None:
        """Note pages as in use.

        Raises:
            _Damaged: a page does not exist, or is in use in a second place.
        """
        if not (number > 1 and number + count <= len(self._in_use)):
            raise _Damaged("is referred to, and does not exist")
        if any(self._in_use[number : number + count]):
            raise _Damaged("is referred to twice")
        self._in_use[number : number + count] = b"\1" * count
        self._done += count
        if self._progress is not None and self._done % _PROGRESS_PAGES < count:
            self._progress(f"pages of {walk.name}", 0)

    def _page(self, walk: _TreeWalk, number: int, level: int, low: bytes | None, high: bytes | None) -> None:
        """Check a page and all pages below, whose keys are from `low` on and below `high`; level 1 is the leaves."""
        try:
            self._take(walk, number)
            data = os.pread(self._descriptor, self._page_bytes, number * self._page_bytes)
            children = self._branch(walk, data, number, low, high) if level > 1 else None
            if children is None:
                self._leaf(walk, data, number, low, high)
                return
        except _Damaged as damage:
            self._problem(number, f"{walk.name}: it {damage}")
            return
        walk.branch_pages += 1
        for (first, child), (following, _) in zip(children, [*children[1:], (high, 0)], strict=True):
            self._page(walk, child, level - 1, first, following)

    def _offsets(self, data: bytes, number: int, kind: int) -> tuple[int, ...]:
        """The offsets of a page's nodes, in the order of their keys.

        Raises:
            _Damaged: the header is none of a page of that kind.
        """
        if len(data) < self._page_bytes:
            raise _Damaged("lies beyond the end of the file")
        page, _, flags, lower, upper = _HEADER.unpack_from(data)
        if page != number or flags != kind:
            raise _Damaged(f"says that it is page {page} with flags {flags:#x}, not {kind:#x}")
        if not _HEADER.size <= lower <= upper <= self._page_bytes or lower % 2:
            raise _Damaged(f"says that its nodes lie from {lower} to {upper}")
        return unpack_from(f"={(lower - _HEADER.size) // 2}H", data, _HEADER.size)

    def _check_filled(self, data: bytes, extents: list[tuple[int, int]]) -> None:
        """Check that nodes, given by offset and end, fill the page from the begin of the nodes on.

        Raises:
            _Damaged
        """
        at = _HEADER.unpack_from(data)[4]
        for offset, end in sorted(extents):
            if offset != at:
                raise _Damaged(f"has a node at {offset}, where {at} follows")
            at = end + end % 2
        if at != self._page_bytes:
            raise _Damaged(f"has nodes up to {at}")

    def _branch(
        self, walk: _TreeWalk, data: bytes, number: int, low: bytes | None, high: bytes | None
    ) -> list[tuple[bytes | None, int]]:
        """The children of a branch page, each with the lowest key that leads there.

        Raises:
            _Damaged
        """
        children: list[tuple[bytes | None, int]] = []
        extents = []
        previous = low
        for offset in self._offsets(data, number, _BRANCH):
            if offset + _NODE.size > self._page_bytes:
                raise _Damaged(f"has a node at {offset}")
            lowest, middle, highest, key_bytes = _NODE.unpack_from(data, offset)
            end = offset + _NODE.size + key_bytes
            extents.append((offset, end))
            key: bytes | None = walk.sortable(data[offset + _NODE.size : end])
            if not children:
                key = low  # The first key leads nowhere, and is not compared.
            elif (
                key is None
                or (previous is not None and key <= previous)
                or (high is not None and key >= high)
            ):
                raise _Damaged("has keys out of order")
            previous = key
            children.append((key, lowest | middle << 16 | highest << 32))
        self._check_filled(data, extents)
        if len(children) < 2:
            raise _Damaged("has fewer than two children")
        return children

    def _leaf(self, walk: _TreeWalk, data: bytes, number: int, low: bytes | None, high: bytes | None) -> None:
        offsets = self._offsets(data, number, _LEAF)
        walk.leaf_pages += 1
        extents, previous, room = [], b"", self._page_bytes - _NODE.size
        is_first, allowed = True, _SUB_TREE if walk.name == _MAIN else _BIG_DATA
        for offset in offsets:
            if offset > room:
                raise _Damaged(f"has a node at {offset}")
            lowest, highest, flags, key_bytes = _NODE.unpack_from(data, offset)
            begin = offset + _NODE.size + key_bytes
            length = lowest | highest << 16
            end = begin + (8 if flags & _BIG_DATA else length)
            key = data[offset + _NODE.size : begin]
            if flags & ~allowed or end > self._page_bytes or not key:
                raise _Damaged(f"has a node of {key_bytes} and {length} bytes with flags {flags:#x}")
            key = walk.sortable(key)
            if (
                (not is_first and key <= previous)
                or (low is not None and key < low)
                or (high is not None and key >= high)
            ):
                raise _Damaged("has keys out of order")
            extents.append((offset, end))
            previous, is_first = key, False
            content = b""
            if flags & _BIG_DATA:
                content = self._overflow(walk, int.from_bytes(data[begin:end], sys.byteorder), length)
            if walk.take is not None:
                walk.take(key, content or data[begin:end])
        walk.entries += len(extents)
        self._check_filled(data, extents)

    def _overflow(self, walk: _TreeWalk, number: int, length: int) -> bytes:
        """Check the overflow pages of a record; return the content where the walk takes it.

        Raises:
            _Damaged
        """
        if not 1 < number < len(self._in_use):
            raise _Damaged(f"has a record on page {number}, which does not exist")
        header = os.pread(self._descriptor, _HEADER.size, number * self._page_bytes)
        page, _, flags, _, _ = _HEADER.unpack(header)
        pages = int.from_bytes(header[12:16], sys.byteorder)
        # A record that became shorter in its transaction keeps its pages.
        if (page, flags) != (number, _OVERFLOW) or pages * self._page_bytes < _HEADER.size + length:
            raise _Damaged(f"has a record on page {number}, which says {page}, {pages} pages and {flags:#x}")
        try:
            self._take(walk, number, pages)
        except _Damaged as damage:
            raise _Damaged(f"has a record on page {number}, which {damage}") from None
        walk.overflow_pages += pages
        if walk.take is None:
            return b""
        return os.pread(self._descriptor, length, number * self._page_bytes + _HEADER.size)


def _label(name: bytes) -> str:
    return f"database {name.decode('ascii', 'backslashreplace')}"


class _TreeWalk:
    """The counts of the walk over one tree.

    Attributes:
        take: called with key and data of every record; None where no record is needed.
    """

    __slots__ = ("branch_pages", "entries", "flags", "leaf_pages", "name", "overflow_pages", "take")

    def __init__(self, name: str, flags: int, take: Callable[[bytes, bytes], None] | None) -> None:
        self.name = name
        self.flags = flags
        self.take = take
        self.branch_pages = self.leaf_pages = self.overflow_pages = self.entries = 0

    def sortable(self, key: bytes) -> bytes:
        """The key as bytes that sort as the keys of the tree: numbers are stored in the order of the machine."""
        return key[::-1] if self.flags & _INTEGER_KEYS and sys.byteorder == "little" else key
