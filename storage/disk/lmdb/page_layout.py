"""The layout of LMDB's pages: headers, nodes, and the two meta pages, read from the file with every offset checked.

LMDB trusts its pages, and maps the file; this module reads the file, so that no content of it ends the process. The
layout is that of LMDB 0.9, whose files have no checksums.
"""

from __future__ import annotations

import os
import sys
from struct import Struct, unpack_from
from typing import Final

from storage.values.named_tuple import NamedTuple

HEADER: Final = Struct("=QHHHH")
"""Page number, padding, flags, end of the node offsets, begin of the nodes; of an overflow page a u32 count."""
NODE: Final = Struct("=HHHH")
"""Of a leaf: length of the data in two halves, flags, length of the key. Of a branch: page number in three parts."""
TREE: Final = Struct("=IHHQQQQQ")
_META = Struct("=IIQQ48s48sQQ")

BRANCH, LEAF, OVERFLOW, _META_PAGE = 1, 2, 4, 8
BIG_DATA, SUB_TREE = 1, 2
"""Flags of a node: the data are on overflow pages; the data are the record of a tree."""
INTEGER_KEYS: Final = 8
NO_PAGE: Final = (1 << 64) - 1
LEVELS_MAX: Final = 32
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_FILE_PAGES_MAX = 1 << 40
_LOOKS_MAX = 100


class Tree(NamedTuple):
    """LMDB's record of one B-tree."""

    padding: int
    flags: int
    levels: int
    branch_pages: int
    leaf_pages: int
    overflow_pages: int
    entries: int
    root: int


class MetaPage(NamedTuple):
    """A meta page: the trees of one commit, free pages first."""

    free: Tree
    main: Tree
    last_page: int
    commit: int


class DamagedPage(Exception):
    """A page that cannot be read any further.

    Attributes:
        page: the number of the page; None where the caller knows it.
    """

    def __init__(self, message: str, page: int | None = None) -> None:
        super().__init__(message)
        self.page = page


class PageFile:
    """A data file, read page by page.

    Attributes:
        page_bytes: the size of a page.
    """

    __slots__ = ("_descriptor", "page_bytes")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.page_bytes = 4096

    @property
    def pages(self) -> int:
        """The number of whole pages in the file."""
        return os.fstat(self._descriptor).st_size // self.page_bytes

    def read(self, page: int, length: int | None = None, offset: int = 0) -> bytes:
        """Read a page, or a part; shorter where the file ends."""
        at = min(page, _FILE_PAGES_MAX) * self.page_bytes + offset
        return os.pread(self._descriptor, self.page_bytes if length is None else length, at)

    def meta_pages(self) -> tuple[MetaPage, MetaPage]:
        """Both meta pages, of successive commits, each at its place, as they stood at one moment.

        Commits may come between a look at the one and a look at the other: two looks at both that are equal tell that
        none came.

        Raises:
            DamagedPage
        """
        seen: tuple[MetaPage, MetaPage] | None = None
        for _ in range(_LOOKS_MAX):
            before, seen = seen, (self._meta_page(0), self._meta_page(1))
            if seen == before:
                break
        assert seen is not None, "there is a look"
        first, second = seen
        commits = first.commit, second.commit
        if commits != (0, 0) and (commits[0] % 2 or not commits[1] % 2 or abs(commits[0] - commits[1]) != 1):
            message = f"the meta pages are of commits {commits[0]} and {commits[1]}, not of successive ones"
            raise DamagedPage(message, 0)
        if first.free[:2] != second.free[:2] or first.main[:2] != second.main[:2]:
            raise DamagedPage("the meta pages differ in page size or flags", 0)
        return first, second

    def _meta_page(self, number: int) -> MetaPage:
        data = self.read(number, HEADER.size + _META.size)
        if len(data) < HEADER.size + _META.size:
            raise DamagedPage("the file ends before this meta page", number)
        page, _, flags, _, _ = HEADER.unpack_from(data)
        magic, version, _, _, free, main, last_page, commit = _META.unpack_from(data, HEADER.size)
        meta = MetaPage(Tree(*TREE.unpack(free)), Tree(*TREE.unpack(main)), last_page, commit)
        is_meta = (page, flags, magic, version) == (number, _META_PAGE, _MAGIC, _VERSION)
        page_bytes = meta.free.padding
        if not is_meta or not 256 <= page_bytes <= 65536 or page_bytes & (page_bytes - 1):
            raise DamagedPage("it is no meta page of LMDB", number)
        self.page_bytes = page_bytes
        return meta

    def check_commit(self, number: int, meta: MetaPage) -> None:
        """Check that the trees of a meta page are those of its commit, which lists the pages that it has freed.

        For the newest meta page: the next commit, whole or interrupted, reuses pages of the older one.

        Raises:
            DamagedPage
        """
        if meta.free.root == NO_PAGE:
            return
        try:
            newest = self._newest_freed(meta.free)
        except DamagedPage as damage:
            raise DamagedPage(f"the tree of free pages {damage}", number) from None
        if newest != meta.commit:
            raise DamagedPage(f"it says that it is of commit {meta.commit}, and is of {newest}", number)

    def _newest_freed(self, tree: Tree) -> int:
        """The highest key of the tree of free pages."""
        number, offset, data = tree.root, 0, b""
        if not 0 < tree.levels <= LEVELS_MAX:
            raise DamagedPage(f"has {tree.levels} levels")
        for level in range(tree.levels, 0, -1):
            data = self.read(number)
            offsets = self.offsets(data, number, BRANCH if level > 1 else LEAF)
            offset = offsets[-1] if offsets else self.page_bytes
            if offset + NODE.size + 8 > self.page_bytes:
                raise DamagedPage(f"has a node at {offset} of page {number}")
            lowest, middle, highest, _ = NODE.unpack_from(data, offset)
            number = lowest | middle << 16 | highest << 32
        return int.from_bytes(data[offset + NODE.size : offset + NODE.size + 8], sys.byteorder)

    def offsets(self, data: bytes, number: int, kind: int) -> tuple[int, ...]:
        """The offsets of a page's nodes, in the order of their keys.

        Raises:
            DamagedPage: the header is none of a page of that kind.
        """
        if len(data) < self.page_bytes:
            raise DamagedPage("lies beyond the end of the file")
        page, _, flags, lower, upper = HEADER.unpack_from(data)
        if page != number or flags != kind:
            raise DamagedPage(f"says that it is page {page} with flags {flags:#x}, not {kind:#x}")
        if not HEADER.size <= lower <= upper <= self.page_bytes or lower % 2:
            raise DamagedPage(f"says that its nodes lie from {lower} to {upper}")
        return unpack_from(f"={(lower - HEADER.size) // 2}H", data, HEADER.size)

    def check_filled(self, data: bytes, extents: list[tuple[int, int]]) -> None:
        """Check that nodes, given by offset and end, fill the page from the begin of the nodes on.

        Raises:
            DamagedPage
        """
        at = HEADER.unpack_from(data)[4]
        for offset, end in sorted(extents):
            if offset != at:
                raise DamagedPage(f"has a node at {offset}, where {at} follows")
            at = end + end % 2
        if at != self.page_bytes:
            raise DamagedPage(f"has nodes up to {at}")
