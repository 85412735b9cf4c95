"""A plain file, flushed after each batch; its consumer stores an offset in a second file, flushed too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from pathlib import Path


class PlainFile:
    """A `Queue` of lines."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._log = os.open(directory / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._offset = os.open(directory / "offset", os.O_CREAT | os.O_WRONLY, 0o600)
        self._reader = (directory / "log").open("rb")
        self._read = 0

    def append(self, values: Sequence[bytes]) -> None:
        os.write(self._log, b"\n".join(values) + b"\n")
        os.fsync(self._log)

    def take(self, count: int) -> int:
        lines = list(islice(self._reader, count))
        self._read += sum(map(len, lines))
        os.pwrite(self._offset, self._read.to_bytes(8, "big"), 0)
        os.fsync(self._offset)
        return len(lines)

    def close(self) -> None:
        self._reader.close()
        os.close(self._log)
        os.close(self._offset)
