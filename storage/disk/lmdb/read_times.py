"""Read times: for every key of a table, the latest read of a range with the key. A step function, pure.

The read time of a key never falls (invariant 18).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

FORGOTTEN: Final = (1 << 64) - 1
"""In place of a transaction: ranges up to the timestamp are forgotten, and the key may have been in one of them."""

_NEVER: Final = (0, 0)

Read = tuple[int, int]
"""Timestamp and transaction; 0 and 0 where a key was never read."""


class ReadTimes:
    """The steps of one table: each from its first key to the first key of the next step, the last one without end."""

    __slots__ = ("_reads", "_starts")

    def __init__(self) -> None:
        self._starts = [b""]
        self._reads: list[Read] = [_NEVER]

    def __len__(self) -> int:
        return len(self._starts)

    def at(self, key: bytes) -> Read:
        """The latest read of a range with `key`."""
        return self._reads[bisect_right(self._starts, key) - 1]

    def cover(self, start: bytes, end: bytes | None, read: Read) -> None:
        """Take in a read of all keys from `start` on below `end` (None: to the end of the table)."""
        if end is not None and end <= start:
            return
        starts, reads = self._starts, self._reads
        first = bisect_right(starts, start) - 1
        last = len(starts) if end is None else bisect_left(starts, end)
        new_starts, new_reads = starts[first:last], [max(before, read) for before in reads[first:last]]
        if starts[first] < start:
            new_starts[0] = start
            new_starts.insert(0, starts[first])
            new_reads.insert(0, reads[first])
        if end is not None and (last == len(starts) or end < starts[last]):
            new_starts.append(end)
            new_reads.append(reads[last - 1])
        low, high = max(first - 1, 0), last + 1
        self._starts[low:high], self._reads[low:high] = _merged(
            starts[low:first] + new_starts + starts[last:high],
            reads[low:first] + new_reads + reads[last:high],
        )

    def forget(self, timestamp: int) -> None:
        """Forget all reads up to a timestamp: every key counts as read then."""
        if timestamp <= 0:
            return
        forgotten = (timestamp, FORGOTTEN)
        reads = [read if read[0] > timestamp else forgotten for read in self._reads]
        self._starts, self._reads = _merged(self._starts, reads)

    def latest(self) -> int:
        """The latest timestamp of all steps."""
        return max(self._reads)[0]

    def median(self) -> int:
        """The timestamp in the middle of those after the earliest: forgetting up to there leaves fewer steps."""
        earliest = min(self._reads)[0]
        later = sorted([timestamp for timestamp, _ in self._reads if timestamp > earliest])
        return later[len(later) // 2] if later else earliest

    def ranges(self) -> Iterator[tuple[bytes, bytes | None, Read]]:
        """Ranges and reads that make the same steps anew."""
        base = min(self._reads)
        if base != _NEVER:
            yield b"", None, base
        ends: list[bytes | None] = [*self._starts[1:], None]
        for start, end, read in zip(self._starts, ends, self._reads, strict=True):
            if read != base:
                yield start, end, read


def _merged(starts: list[bytes], reads: list[Read]) -> tuple[list[bytes], list[Read]]:
    """The steps without those that change nothing."""
    kept = [index for index in range(len(starts)) if not index or reads[index] != reads[index - 1]]
    return [starts[index] for index in kept], [reads[index] for index in kept]
