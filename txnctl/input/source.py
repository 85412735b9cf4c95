"""Bytes from a file, a pipe or a terminal, as soon as the bytes arrive: the one way to the input of a command.

Absent is not empty: a closed standard input is refused, as a closed standard output is; /dev/null is empty on purpose.
"""

from __future__ import annotations

import os
import sys
from errno import EISDIR
from fcntl import F_GETFL, fcntl
from io import BufferedReader, RawIOBase
from stat import S_ISDIR, S_ISREG

from storage.errors import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

BLOCK_BYTES = 4 * 1024 * 1024


class Source:
    """Bytes as soon as available.

    Attributes:
        name: for messages: the file's name.
        size: bytes there are, where that is known.
        limit_s: the longest wait for more, without limit if None; asked before each wait, and free to raise.
    """

    __slots__ = (
        "_descriptor",
        "_opened",
        "_passed",
        "_stream",
        "_waits",
        "is_terminal",
        "limit_s",
        "name",
        "size",
    )

    def __init__(self, descriptor: int | None, stream: BinaryIO | None, name: str) -> None:
        self._descriptor = descriptor
        self._stream = stream
        self._passed = 0
        self._opened: int | None = None
        self.name = name
        self.size: int | None = None
        self.limit_s: Callable[[], float | None] = lambda: None
        self._waits = self.is_terminal = False
        if descriptor is not None:
            status = os.fstat(descriptor)
            self._waits = not S_ISREG(status.st_mode)
            self.is_terminal = self._waits and os.isatty(descriptor)
            if not self._waits:
                self.size = status.st_size

    @classmethod
    def open(cls, path: str | None) -> Source:
        """The file at `path`, or standard input.

        Raises:
            InvalidValue: it cannot be read, or standard input is closed.
        """
        if path is None or path == "-":
            return cls._standard_input()
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if S_ISDIR(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        source = cls(descriptor, None, path)
        source._opened = descriptor
        return source

    @classmethod
    def _standard_input(cls) -> Source:
        name = "standard input"
        if sys.stdin is None:
            raise _closed(name)
        try:
            descriptor = sys.stdin.fileno()
        except OSError:
            # Not a file of the system: something that a program put there.
            return cls(None, sys.stdin.buffer, name)
        if fcntl(descriptor, F_GETFL) & os.O_ACCMODE == os.O_WRONLY:
            raise _closed(name)
        return cls(descriptor, None, name)

    def stream(self) -> BufferedReader:
        """The bytes for a reader of files, which closes the file at its end."""
        return BufferedReader(_Raw(self))

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def read_all(self, bytes_max: int) -> bytes:
        """All bytes; of more than `bytes_max`, the first ones, which are more than that.

        Raises:
            InvalidValue: it cannot be read.
        """
        pieces: list[bytes] = []
        size = 0
        while size <= bytes_max and (data := self.read(None)) != b"":
            pieces.append(data or b"")
            size += len(pieces[-1])
        return b"".join(pieces)

    def read(self, wait_s: float | None) -> bytes | None:
        """What is there; nothing at the end; None if nothing came within `wait_s`, or within `limit_s`.

        Raises:
            InvalidValue: it cannot be read.
        """
        try:
            if self._descriptor is None:
                data = b"" if self._stream is None else self._stream.read(BLOCK_BYTES)
            else:
                if self._waits and not _is_ready(self._descriptor, _shorter(wait_s, self.limit_s())):
                    return None
                data = os.read(self._descriptor, BLOCK_BYTES)
        except BlockingIOError:
            # A process that shares the pipe made the pipe non-blocking, and was quicker.
            return None
        except OSError as error:
            raise _unreadable(self.name, error) from error
        self._passed += len(data)
        return data

    def passed(self) -> int:
        """Bytes read since this was last asked."""
        passed, self._passed = self._passed, 0
        return passed


class _Raw(RawIOBase):
    """The bytes of a source, for a buffer above."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._rest = memoryview(b"")

    def close(self) -> None:
        self._source.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            data = self._source.read(None)
            if data == b"":
                return 0
            self._rest = memoryview(data or b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _shorter(one: float | None, other: float | None) -> float | None:
    """Of two times to wait, the shorter one; None is for ever."""
    return other if one is None else one if other is None else min(one, other)


def _is_ready(descriptor: int, wait_s: float | None) -> bool:
    """Whether there is something to read, or the end, before the time is over."""
    from math import ceil
    from select import POLLIN, poll

    # Not select(), which refuses a descriptor from 1024 on.
    waiting = poll()
    waiting.register(descriptor, POLLIN)
    return bool(waiting.poll(None if wait_s is None else ceil(wait_s * 1000)))


def _closed(name: str) -> InvalidValue:
    return InvalidValue(
        f"{name} is closed; nothing was changed",
        hint="Redirect it from /dev/null to read nothing on purpose.",
    )


def _unreadable(name: str, error: Exception) -> InvalidValue:
    reason = getattr(error, "strerror", None) or error
    return InvalidValue(f"cannot read {name}: {reason}", path=name)
