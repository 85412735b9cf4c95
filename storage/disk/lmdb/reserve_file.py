"""The reserve of a store in a directory: a file beside the data file; see `disk/reserve.py` for its setting and shares.

LMDB writes new pages for a delete before any page is freed, so a disk filled to the last page would refuse the deletion
that helps. A change with a share of the reserve is run again after the reserve was given up, inside the writer gate; a
commit takes back what is left of the room before the gate opens, so that no other writer gets the room.

Must not know: the meaning of changes. Errors of the disk are ignored here: a store without its reserve is as
good as one of an earlier release.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from storage.disk.lmdb import directory
from storage.disk.reserve import ReserveShare, setting
from storage.disk.view import WriteBatch

FILE_NAME: Final = "reserve"
_BLOCK: Final = 512
_PAGE: Final = 4096
_LOOK_NS: Final = 1_000_000_000


def kept_bytes(path: str) -> int:
    """The length of the reserve of the store at `path`: fewer bytes than set where the disk had no room.

    Not the blocks, which a file system that compresses counts as it likes.
    """
    try:
        return os.lstat(os.path.join(path, FILE_NAME)).st_size
    except OSError:
        return 0


class Reserve:
    """The reserve of one store; used inside the writer gate only.

    Attributes:
        is_given_up: whether a change of this process uses the room now.
        look_ns: the boot clock from which on a commit looks whether the file is whole: at first 0.
    """

    __slots__ = ("_path", "is_given_up", "look_ns")

    def __init__(self, path: str) -> None:
        self._path = path
        self.is_given_up = False
        self.look_ns = 0

    def missing(self, batch: WriteBatch, now_ns: int) -> int | None:
        """The size that the reserve shall have, if the file is smaller.

        Args:
            now_ns: the boot clock; the next look is due a second later.
        """
        self.look_ns = now_ns + _LOOK_NS
        size = setting(batch)
        try:
            status = os.lstat(os.path.join(self._path, FILE_NAME))
        except OSError:
            return size or None
        return size if _allocated(status) < size else None

    def keep(self, size: int) -> None:
        """Make the file `size` bytes long, or as long as the room on the disk allows."""
        self.is_given_up = False
        with suppress(OSError), self._opened(is_wanted=size > 0) as descriptor:
            kept = _allocated(os.fstat(descriptor))
            if kept > size:
                os.ftruncate(descriptor, size)
            if kept < size:
                _extend(descriptor, kept, size)

    def give_up(self, share: ReserveShare) -> bool:
        """Give the room of a share back to the disk; False if there is none.

        The file is synced, as journals of file systems let no block be used again before.
        """
        if share.value is None or self.is_given_up:
            return False
        with suppress(OSError), self._opened(is_wanted=False) as descriptor:
            if os.fstat(descriptor).st_size > share.value:
                os.ftruncate(descriptor, share.value)
                os.fsync(descriptor)
                self.is_given_up = True
        return self.is_given_up

    @contextmanager
    def _opened(self, is_wanted: bool) -> Iterator[int]:
        """Open the file, or make it where wanted, of the store's owner.

        Raises:
            OSError: also for a link or special file, or one of another user or with a second name: it may be anything.
        """
        path, flags = os.path.join(self._path, FILE_NAME), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(path, flags | os.O_NONBLOCK)
        except FileNotFoundError:
            if not is_wanted:
                raise
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
            directory.give_to_owner(descriptor, self._path)
        try:
            status = os.fstat(descriptor)
            is_own = status.st_uid == os.stat(self._path).st_uid and status.st_nlink == 1
            if not (stat.S_ISREG(status.st_mode) and is_own):
                raise PermissionError(f"{path} is no file of the store")
            yield descriptor
        finally:
            os.close(descriptor)


def _allocated(status: os.stat_result) -> int:
    """Bytes of a file for which the disk has set blocks aside."""
    return min(status.st_size, status.st_blocks * _BLOCK)


def _extend(descriptor: int, kept: int, size: int) -> None:
    """Allocate up to `size` bytes: all of them, or what the disk has left."""
    disk = os.fstatvfs(descriptor)
    blocks = disk.f_bavail if os.geteuid() else disk.f_bfree
    more = min(size - kept, blocks * disk.f_frsize // _PAGE * _PAGE)
    while more >= _PAGE:
        try:
            os.posix_fallocate(descriptor, 0, kept + more)
        except OSError:
            os.ftruncate(descriptor, kept)
            more = more // 2 // _PAGE * _PAGE
        else:
            return
