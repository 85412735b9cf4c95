"""Preallocation: zeros written to the end of the data file ahead of commits, for speed.

A flush that also records a new file length costs up to twice as much. Reserved room (fallocate) does not help, because
the flush then records that the room is in use; written zeros help. LMDB never reads pages behind its last used page.

Must not know: the content of commits. Errors are ignored here: the commit meets the same errors, and reports.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

CHUNK_BYTES: Final = 1 << 20
_ZEROS: Final = bytes(CHUNK_BYTES)


class Preallocation:
    """The preallocated room of one data file; used inside the writer gate only.

    Attributes:
        left: bytes of the room. A commit subtracts its largest need, and calls `provide` below zero.
    """

    __slots__ = ("_descriptor", "_path", "left")

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self.left = 0

    def provide(self, used: int, needed: int) -> None:
        """Extend the file to at least `needed` bytes behind the `used` bytes, in whole chunks."""
        with suppress(OSError):
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            end = os.fstat(self._descriptor).st_size
            while end - used < needed:
                end += os.pwrite(self._descriptor, _ZEROS, end)
            self.left = end - used - needed

    def file_bytes(self) -> int:
        """The length of the file."""
        return os.stat(self._path).st_size

    def cut(self, size: int) -> None:
        """Cut the file back to a length that it had, after a refused commit has extended the file."""
        with suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_size > size:
                    os.ftruncate(descriptor, size)
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Close the file, and forget its room."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self.left = 0
