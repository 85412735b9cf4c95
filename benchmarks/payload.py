"""The messages that are measured: printable, all different, the same for every contender and in every run."""

from __future__ import annotations

import random
from itertools import cycle
from pathlib import Path

_POOL_BATCHES = 16


class Payload:
    """An endless supply of batches of `count` values of `size` bytes, made before the clock runs."""

    def __init__(self, count: int, size: int = 100) -> None:
        chance = random.Random(size * 1_000_003 + count)
        batches = [[value(chance, size) for _ in range(count)] for _ in range(_POOL_BATCHES)]
        self._turns = cycle(batches)

    def batch(self) -> list[bytes]:
        return next(self._turns)


def value(chance: random.Random, size: int) -> bytes:
    """`size` bytes of hexadecimal digits: text without separators or quotes, so that no importer has to escape."""
    return f"{chance.getrandbits(4 * size):0{size}x}".encode()


def write_lines(path: Path, count: int, size: int = 100) -> None:
    """A file of `count` lines of `size` bytes and a newline."""
    chance = random.Random(size)
    with path.open("wb") as lines:
        for start in range(0, count, 10_000):
            lines.writelines(value(chance, size) + b"\n" for _ in range(min(10_000, count - start)))
