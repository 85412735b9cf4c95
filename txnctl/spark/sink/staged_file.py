"""The format of a staged file: packed entries, an index, and the commit message. No pyarrow, no lmdb.

A file is packed entries, one after the other; the index; u32 bytes of the index, u32 CRC-32 of the index; TXNSTAGE. The
index is JSON: for each target `[offset, bytes, messages, CRC-32]` of its entries in order. The commit message of a task
has size and CRC of the index, and the index has size and CRC of every entry: a damaged or exchanged file is refused.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, Protocol
from zlib import crc32

from storage.errors import InvalidValue
from storage.topic.entry import PackedColumns

READ_BYTES: Final = 4 * 1024 * 1024
"""Approximate bytes of one read of a staged file."""

_MAGIC: Final = b"TXNSTAGE"
_TRAILER = Struct(">II8s")
Frame = tuple[int, int, int, int]
"""Offset, bytes, messages and CRC-32 of an entry."""


class StagedOutput(Protocol):
    """The output stream of a staged file."""

    def write(self, data: bytes, /) -> Any: ...

    def close(self) -> None: ...


class StagedInput(Protocol):
    """The input file of staged entries, with random access."""

    def size(self) -> int: ...

    def read_at(self, nbytes: int, offset: int, /) -> bytes: ...


@dataclass(frozen=True)
class StagedFile:
    """A staged file as its commit message describes it.

    Attributes:
        write: the directory of the write that the task belongs to.
        host: the name of the host that ran the task.
        rows: the number of rows by target.
        bytes: size of the whole file.
        checksum: CRC-32 of the index.
        content: the sum of the rows (`content_sum.py`); 0 where none is asked for.
    """

    write: str
    name: str
    host: str
    rows: dict[str, int]
    bytes: int
    checksum: int
    content: int = 0

    @property
    def count(self) -> int:
        return sum(self.rows.values())


class StagedFileWriter:
    """Writer of entries in order, then of the index. Errors are the errors of the stream.

    Attributes:
        content: the sum of the rows, for the description of the file.
    """

    def __init__(self, stream: StagedOutput, write: str, name: str) -> None:
        self._stream = stream
        self._write = write
        self._name = name
        self._offset = 0
        self._index: dict[str, list[Frame]] = {}
        self.content = 0

    def add(self, target: str, entry: PackedColumns) -> None:
        """Write the next entry of a target."""
        self._stream.write(entry.data)
        size = len(entry.data)
        self._index.setdefault(target, []).append((self._offset, size, entry.count, crc32(entry.data)))
        self._offset += size

    def close(self) -> StagedFile:
        """Write the index, and return the description of the file for the commit message."""
        index = json.dumps(self._index, separators=(",", ":")).encode()
        checksum = crc32(index)
        self._stream.write(index + _TRAILER.pack(len(index), checksum, _MAGIC))
        self._stream.close()
        rows = {target: sum(frame[2] for frame in frames) for target, frames in self._index.items()}
        size = self._offset + len(index) + _TRAILER.size
        return StagedFile(self._write, self._name, socket.gethostname(), rows, size, checksum, self.content)


def entries(source: StagedInput, file: StagedFile, target: str) -> Iterator[PackedColumns]:
    """Read the entries of a target in order, a few MB at a time.

    Raises:
        InvalidValue: the file is not the staged file.
        OSError
    """
    for run in _runs(_index(source, file).get(target, [])):
        first, last = run[0], run[-1]
        data = source.read_at(last[0] + last[1] - first[0], first[0])
        for offset, size, count, checksum in run:
            entry = data[offset - first[0] : offset - first[0] + size]
            if crc32(entry) != checksum:
                raise _damaged(file, f"wrong checksum of the entry at {offset:,}")
            yield PackedColumns(count, entry)


def _index(source: StagedInput, file: StagedFile) -> dict[str, list[Frame]]:
    """Read the index of a staged file, and check it against the commit message."""
    if source.size() != file.bytes:
        raise _damaged(file, f"size {source.size():,} bytes, not {file.bytes:,}")
    size, checksum, magic = _TRAILER.unpack(source.read_at(_TRAILER.size, file.bytes - _TRAILER.size))
    if magic != _MAGIC or checksum != file.checksum or size > file.bytes - _TRAILER.size:
        raise _damaged(file, "wrong trailer")
    data = source.read_at(size, file.bytes - _TRAILER.size - size)
    if crc32(data) != checksum:
        raise _damaged(file, "wrong checksum of the index")
    index: dict[str, list[Frame]] = json.loads(data)
    return index


def _runs(frames: list[Frame]) -> Iterator[list[Frame]]:
    """Group neighbouring entries into reads of about `READ_BYTES`."""
    run: list[Frame] = []
    for frame in frames:
        if run and (run[-1][0] + run[-1][1] != frame[0] or frame[0] - run[0][0] >= READ_BYTES):
            yield run
            run = []
        run.append(frame)
    if run:
        yield run


def _damaged(file: StagedFile, why: str) -> InvalidValue:
    return InvalidValue(
        f"staged file {file.name} of {file.write} is damaged: {why}",
        hint="Nothing was stored. Run the write again.",
    )
