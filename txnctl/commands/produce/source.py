"""The input of `produce`: bytes from a file, a pipe or a terminal as they come, and the lines in them.

Lines are handed out in blocks: large ones from a file, what has come by then from a pipe. Memory is bounded: a line
that is longer than any message may be is never held.
"""

from __future__ import annotations

import os
import sys
from errno import EISDIR
from stat import S_ISDIR, S_ISREG
from time import monotonic

from storage.errors import InvalidValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

BLOCK_BYTES = 4 * 1024 * 1024
PAUSE_S = 0.05
"""Lines are handed out when nothing more has come for so long."""

GATHER_S = 0.5
"""And at the latest so long after the first of them: from a slow pipe they are stored within a second."""


class Source:
    """Bytes as they come.

    Attributes:
        name: for messages: the file's name.
        size: bytes there are, where that is known.
        limit_s: how long it may wait for more, for ever if None; asked before each wait, and free to raise.
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
            # Whoever shares the pipe made it non-blocking, and was quicker.
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
    from select import select

    return bool(select([descriptor], [], [], wait_s)[0])


def _unreadable(name: str, error: Exception) -> InvalidValue:
    reason = getattr(error, "strerror", None) or error
    return InvalidValue(f"cannot read {name}: {reason}", path=name)


class Block:
    """Lines without their ends.

    Attributes:
        first: the number of the first line.
        too_long: the number of the line after them, where that one is too long to be held.
    """

    __slots__ = ("first", "lines", "too_long")

    def __init__(self, lines: list[bytes], first: int, too_long: int | None = None) -> None:
        self.lines = lines
        self.first = first
        self.too_long = too_long


class LineReader:
    """The lines of a source, in blocks, none of them longer than `line_bytes_max`.

    A line ends with LF; a CR before it belongs to the line's end, unless `keeps_cr`.
    """

    def __init__(self, source: Source, line_bytes_max: int, *, keeps_cr: bool = False) -> None:
        self._source = source
        self._line_bytes_max = line_bytes_max
        self._keeps_cr = keeps_cr
        self._pieces: list[bytes] = []
        self._size = 0
        self._tail = 0
        self._since: float | None = None
        self._number = 1

    def __iter__(self) -> Iterator[Block]:
        while True:
            data = self._source.read(self._patience())
            if data == b"":
                yield from self._end()
                return
            if data:
                self._add(data)
            if self._since is not None and (data is None or self._is_due()):
                yield self._cut()
            if self._tail > self._line_bytes_max:
                yield (
                    Block([], self._number, self._number) if self._since is None else self._cut(overlong=True)
                )
                if not self._drop_line():
                    return

    def _patience(self) -> float | None:
        """How long the lines at hand may wait for more; for ever if there are none."""
        if self._since is None:
            return None
        return max(0.0, min(PAUSE_S, self._since + GATHER_S - monotonic()))

    def _is_due(self) -> bool:
        assert self._since is not None
        return self._size >= BLOCK_BYTES or monotonic() >= self._since + GATHER_S

    def _add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        end = data.rfind(b"\n")
        if end < 0:
            self._tail += len(data)
            return
        self._tail = len(data) - end - 1
        if self._since is None:
            self._since = monotonic()

    def _cut(self, *, overlong: bool = False) -> Block:
        """All whole lines; what follows them stays."""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        end = data.rfind(b"\n")
        rest = data[end + 1 :]
        self._pieces, self._size, self._since = [rest] if rest else [], len(rest), None
        lines = self._split(data[:end])
        first = self._number
        self._number += len(lines)
        return Block(lines, first, self._number if overlong else None)

    def _split(self, ended: bytes) -> list[bytes]:
        """The lines in bytes after which a line feed stood."""
        if not self._keeps_cr and b"\r" in ended:
            ended = ended.replace(b"\r\n", b"\n").removesuffix(b"\r")
        return ended.split(b"\n")

    def _end(self) -> Iterator[Block]:
        """The last lines; the very last may have no end."""
        block = Block([], self._number) if self._since is None else self._cut()
        if self._pieces:
            block.lines.append(b"".join(self._pieces))
        if block.lines:
            yield block

    def _drop_line(self) -> bool:
        """Pass over the rest of a line; False if the input ended with it."""
        self._pieces, self._size, self._tail = [], 0, 0
        while (data := self._source.read(None)) != b"":
            end = -1 if data is None else data.find(b"\n")
            if data is not None and end >= 0:
                self._number += 1
                if end + 1 < len(data):
                    self._add(data[end + 1 :])
                return True
        return False
