"""Bytes from a file, a pipe or a terminal, as soon as the bytes arrive."""

from __future__ import annotations

import os
import sys
from errno import EISDIR
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

    __slots__ = ("_descriptor", "_passed", "_stream", "_waits", "is_terminal", "limit_s", "name", "size")

    def __init__(self, descriptor: int | None, stream: BinaryIO | None, name: str) -> None:
        self._descriptor = descriptor
        self._stream = stream
        self._passed = 0
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
            InvalidValue: it cannot be read.
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
        return cls(descriptor, None, path)

    @classmethod
    def _standard_input(cls) -> Source:
        name = "standard input"
        if sys.stdin is None:
            return cls(None, None, name)
        try:
            return cls(sys.stdin.fileno(), None, name)
        except OSError:
            # Not a file of the system: something that a program put there.
            return cls(None, sys.stdin.buffer, name)

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


def _unreadable(name: str, error: Exception) -> InvalidValue:
    reason = getattr(error, "strerror", None) or error
    return InvalidValue(f"cannot read {name}: {reason}", path=name)
