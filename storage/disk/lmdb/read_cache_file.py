"""The file `reads.cache`: mapped, grown, and made anew whatever stands in its place.

Only a plain file of the store's owner counts, under a single name and without write permission for further users.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from contextlib import suppress
from typing import Final

from storage.disk.lmdb.directory import give_to_owner
from storage.disk.lmdb.read_cache_layout import HEADER_BYTES
from storage.errors import StoreInvalid, StoreUnsafe
from storage.system_errors import refusal, system_refusal

FILE_NAME: Final = "reads.cache"

_NO_FILE: Final = {
    errno.ENOENT, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENXIO, errno.ENODEV,
}  # fmt: skip


class ReadCacheFile:
    """The file of one store in one process.

    Attributes:
        data: the mapped bytes; None where no file is attached.
    """

    __slots__ = ("_descriptor", "_directory", "_path", "_size", "data")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, FILE_NAME)
        self._descriptor = -1
        self.data: mmap.mmap | None = None
        self._size = 0

    @property
    def inode(self) -> int:
        return os.fstat(self._descriptor).st_ino

    def close(self) -> None:
        """Unmap and close the file."""
        if self.data is not None:
            self.data.close()
            self.data = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def drop_lost(self) -> bool:
        """Unmap a file that was removed or cut short; return whether the file was."""
        if self.data is None:
            return False
        status = os.fstat(self._descriptor)
        if status.st_nlink and status.st_size >= self._size:
            return False
        self.close()
        return True

    def attach(self) -> bool:
        """Map the file at the path, in place of a lost one, if the file counts; return whether a file is mapped.

        Raises:
            StoreFull, TooManyFiles, StoreInvalid
        """
        self.drop_lost()
        if self.data is not None:
            return True
        descriptor = self._open(os.O_RDWR)
        if descriptor is None:
            return False
        try:
            status = os.fstat(descriptor)
            is_owners = status.st_uid == os.stat(self._directory).st_uid
            if is_owners and _is_private(status) and status.st_size >= HEADER_BYTES:
                # `_map` closes a descriptor that it cannot map: closed twice, a number may be that of another file.
                mapped, descriptor = descriptor, -1
                self._map(mapped, status.st_size)
        finally:
            if descriptor >= 0:
                os.close(descriptor)
        return self.data is not None

    def read_header(self) -> tuple[bytes, int]:
        """The header and the inode of the file at the path, without a map; an empty header if no file counts."""
        try:
            descriptor = self._open(os.O_RDONLY)
        except StoreInvalid:
            descriptor = None
        if descriptor is None:
            return b"", 0
        try:
            status = os.fstat(descriptor)
            return (os.pread(descriptor, HEADER_BYTES, 0), status.st_ino) if _is_private(status) else (b"", 0)
        except OSError:
            return b"", 0
        finally:
            os.close(descriptor)

    def create(self, size: int) -> mmap.mmap:
        """Make and map a new file of zeros, and remove the file at the path.

        Raises:
            StoreFull, TooManyFiles, StoreInvalid, StoreUnsafe
        """
        self.close()
        try:
            with suppress(FileNotFoundError):
                os.unlink(self._path)
        except OSError as error:
            what = f"{self._path} cannot be replaced"
            raise system_refusal(what, error) or StoreUnsafe(
                f"{what}: {error.strerror}", hint="Remove or rename it; the next writer makes a new file."
            ) from error
        descriptor = -1
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, 0o600)
            os.fchmod(descriptor, 0o600)
            give_to_owner(descriptor, self._directory)
            # Without room on the disk for a page, a write to mapped memory would kill the process.
            os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise refusal(f"cannot make {self._path}", error) from error
        return self._map(descriptor, size)

    def grow(self, size: int) -> bool:
        """Make file and map larger; without room for that, change nothing and return False."""
        try:
            os.posix_fallocate(self._descriptor, 0, size)
            data = mmap.mmap(self._descriptor, size)
        except OSError:
            return False
        if self.data is not None:
            self.data.close()
        self.data, self._size = data, size
        return True

    def follow(self, size: int) -> bool:
        """Map a file that a different process has made larger; False if the file is shorter than `size`."""
        return os.fstat(self._descriptor).st_size >= size and self.grow(size)

    def _open(self, flags: int) -> int | None:
        """A descriptor of the file; None without a file that can be opened."""
        try:
            # Opening a pipe would wait for a writer.
            return os.open(self._path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno in _NO_FILE:
                return None
            raise refusal(f"cannot open {self._path}", error) from error

    def _map(self, descriptor: int, size: int) -> mmap.mmap:
        try:
            data = mmap.mmap(descriptor, size)
        except OSError as error:
            os.close(descriptor)
            raise refusal(f"cannot open {self._path}", error) from error
        self._descriptor, self._size, self.data = descriptor, size, data
        return data


def _is_private(status: os.stat_result) -> bool:
    """Whether a file is plain, under a single name, and closed to writes by further users."""
    return stat.S_ISREG(status.st_mode) and not status.st_mode & 0o022 and status.st_nlink == 1
