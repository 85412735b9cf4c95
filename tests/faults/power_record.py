"""The record of a process's writes, as `syscalls.c` leaves it, read back as events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

_HEADER: Final = Struct("=8Q")


class Event(NamedTuple):
    """A call that has changed a file or a directory, or a mark.

    Attributes:
        kind: W(rite), T(runcate), A(llocate), S(ync), O(pen), D (make a directory), U(nlink), R(ename), P (map for
            writing), M(ark).
        offset: of a write; the length of a truncated or allocated file.
        flags: of an opened file; of a write, 1 where the call waits for the disk; of an allocation, its mode.
        paths: of a call with paths, absolute.
        data: the bytes of a write, the text of a mark.
    """

    kind: str
    inode: int
    offset: int
    flags: int
    paths: tuple[str, ...] = ()
    data: bytes = b""

    @property
    def is_synchronous(self) -> bool:
        return self.kind == "W" and self.flags == 1


def read_record(path: str) -> Iterator[Event]:
    """Every event of a record.

    Raises:
        ValueError: the process made a call that the record does not know.
    """
    with open(path, "rb") as file:
        while header := file.read(_HEADER.size):
            kind, inode, offset, length, flags, first, second, result = _HEADER.unpack(header)
            letter = chr(kind)
            if letter == "?":
                raise ValueError(f"system call {result} changes files in a way that is not recorded")
            if letter in "WM":
                yield Event(letter, inode, offset, flags, data=file.read(length or first))
            else:
                paths = tuple(
                    os.path.normpath(os.fsdecode(file.read(size))) for size in (first, second) if size
                )
                yield Event(letter, inode, offset, flags, paths)
