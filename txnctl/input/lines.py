"""Lines of a source in blocks: large blocks from a file, the bytes at hand from a pipe.

Memory is bounded: no line longer than the limit is ever held.
"""

from __future__ import annotations

from time import monotonic

from txnctl.input.source import BLOCK_BYTES, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
PAUSE_S = 0.05
"""Lines are handed out when nothing more has come for so long."""

GATHER_S = 0.5
"""And at the latest so long after the first of them: from a slow pipe they are stored within a second."""


class Block:
    """Lines without their ends.

    Attributes:
        first: the number of the first line.
        too_long: the number of the next line, if too long to be held.
        is_unended: whether the last line ends with the input, and not with LF.
    """

    __slots__ = ("first", "is_unended", "lines", "too_long")

    def __init__(self, lines: list[bytes], first: int, too_long: int | None = None) -> None:
        self.lines = lines
        self.first = first
        self.too_long = too_long
        self.is_unended = False


class LineReader:
    """The lines of a source, in blocks, no line longer than `line_bytes_max`.

    A line ends with LF; a CR before LF belongs to the end, unless `keeps_cr`. All other bytes are content: NUL, further
    CRs, VT, FF, and bytes that are not UTF-8.
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
            # One byte more may be the CR of an end of which the LF has not come yet.
            if self._tail > self._line_bytes_max + 1:
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
        """All whole lines; the rest stays buffered."""
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
            block.is_unended = True
        if block.lines:
            yield block

    def _drop_line(self) -> bool:
        """Pass over the rest of a line; False at the end of the input."""
        self._pieces, self._size, self._tail = [], 0, 0
        while (data := self._source.read(None)) != b"":
            end = -1 if data is None else data.find(b"\n")
            if data is not None and end >= 0:
                self._number += 1
                if end + 1 < len(data):
                    self._add(data[end + 1 :])
                return True
        return False
