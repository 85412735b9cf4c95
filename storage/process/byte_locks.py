"""Kernel locks on single bytes of an open file.

Linux has open file description locks: the kernel drops such a lock when the last descriptor closes, on exit and after
kill -9 alike.
"""

from __future__ import annotations

import errno
import fcntl
import os
from struct import Struct
from typing import Final

from storage.errors import PlatformUnsupported, StoreInvalid
from storage.system_errors import system_refusal

# struct flock: l_type, l_whence, padding, l_start, l_len, l_pid, padding.
_FLOCK: Final = Struct("@hhqqi4x")
# Other systems lack the constants: importing works there, and `check_platform` says why a store does not open.
SET: Final = getattr(fcntl, "F_OFD_SETLK", -1)
_GET: Final = getattr(fcntl, "F_OFD_GETLK", -1)


def check_platform() -> None:
    """Check that the operating system has the kernel locks.

    Raises:
        PlatformUnsupported: the system is not Linux.
    """
    system = os.uname().sysname
    if system != "Linux":
        raise PlatformUnsupported(
            f"txnctl needs the kernel locks of Linux; {system} does not have them",
            hint="Run txnctl on Linux, in a container or a virtual machine.",
        )


class ByteLocks:
    """The byte locks that this process holds on one open file.

    Attributes:
        descriptor: the open file; -1 after `close`.
        path: the path given to `open`.
    """

    __slots__ = ("descriptor", "path")

    def __init__(self, path: str, *, writable: bool) -> None:
        self.path = path
        access = os.O_RDWR if writable else os.O_RDONLY
        self.descriptor = os.open(path, access | os.O_CLOEXEC | os.O_NOFOLLOW)

    def close(self) -> None:
        """Close the file, which drops every lock held through this descriptor."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def take_exclusive(self, byte: int) -> bool:
        """Lock a byte exclusively, without waiting; return False if a second process has any lock on the byte."""
        return self._set(fcntl.F_WRLCK, byte)

    def take_shared(self, byte: int) -> bool:
        """Lock a byte shared, without waiting; return False if a second process has an exclusive lock on the byte."""
        return self._set(fcntl.F_RDLCK, byte)

    def release(self, byte: int) -> None:
        """Unlock a byte. A refused unlock is no error of what was done under it: the lock goes with the file."""
        try:
            self._set(fcntl.F_UNLCK, byte)
        except StoreInvalid:
            return

    def is_taken(self, byte: int) -> bool:
        """Whether a lock on the byte is held through a descriptor of a different opening of the file."""
        return self.find_taken(byte, byte) is not None

    def find_taken(self, first: int, last: int) -> int | None:
        """A byte of a range that is locked through a descriptor of a different opening of the file; None for none."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, first, last - first + 1, 0)
        try:
            kind, _, byte, *_ = _FLOCK.unpack(fcntl.fcntl(self.descriptor, _GET, asked))
        except OSError as error:
            self._raise_refusal(error)
            raise
        # The kernel joins locks on neighbouring bytes, so the lock may begin before the range.
        return None if kind == fcntl.F_UNLCK else max(int(byte), first)

    def _set(self, kind: int, byte: int) -> bool:
        try:
            fcntl.fcntl(self.descriptor, SET, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            self._raise_refusal(error)
            raise
        return True

    def _raise_refusal(self, error: OSError) -> None:
        """Raise the error of storage where the system refused a lock."""
        refused = system_refusal(f"cannot lock {self.path}", error)
        if refused is not None:
            raise refused from error


def flock(kind: int, byte: int) -> bytes:
    """Return the packed `struct flock` with which `fcntl` locks or unlocks a byte."""
    return _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0)
