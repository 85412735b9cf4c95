"""Room at the end of the data file, written ahead of what a commit will need.

A flush that also has to record a new length of the file costs up to twice as much as one that does not. Room that was
only reserved (fallocate) does not help, as then the flush has to record that it is in use; zeros that were written
do. LMDB never looks at pages behind the last one it uses.

Must not know: what is written. It is a matter of speed alone: where it cannot make room, the commit will say why.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

CHUNK_BYTES: Final = 1 << 20
_ZEROS: Final = bytes(CHUNK_BYTES)


class Preallocation:
    """Of one data file; used inside the writer gate only."""

    __slots__ = ("_descriptor", "_left", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self._left = 0

    def spend(self, wanted: int) -> bool:
        """Count what a commit may need, at the most; whether `provide` has to look how much there is."""
        self._left -= wanted
        return self._left < 0

    def provide(self, used: int, wanted: int) -> None:
        """See that there are `wanted` bytes behind the `used` ones, and some more while at it."""
        with suppress(OSError):
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            end = os.fstat(self._descriptor).st_size
            while end - used < wanted:
                end += os.pwrite(self._descriptor, _ZEROS, end)
            self._left = end - used - wanted

    def close(self) -> None:
        """Close the file, and forget what was known of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._left = 0
