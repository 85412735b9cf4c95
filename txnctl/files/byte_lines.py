"""The lines of a file, or of a range of it, and the number of a line. A line ends with LF."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final, NamedTuple

from storage.errors import BadLine
from txnctl.files import listing
from txnctl.spark.file_systems import without_secrets

_BLOCK_BYTES: Final = 1 << 20


class ByteLine(NamedTuple):
    """A line with its end.

    Attributes:
        at: the byte where the line begins.
        content: None for a line that is too long.
    """

    at: int
    content: bytes | None


def read_lines(path: str, start: int, end: int | None, bytes_max: int) -> Iterator[ByteLine]:
    """Yield the lines that begin from byte `start` on, below `end` (None: up to the end of the file).

    Raises:
        InvalidValue: the file cannot be read.
    """
    with listing.read_errors(path), listing.opened(path) as stream:
        at = 0
        if start:
            # The line that a different part begins ends here.
            at = start - 1
            _skip(stream, at)
            at += _rest_of_line(stream)
        while (end is None or at < end) and (line := stream.readline(bytes_max + 1)):
            if len(line) > bytes_max and not line.endswith(b"\n"):
                yield ByteLine(at, None)
                at += len(line) + _rest_of_line(stream)
                continue
            yield ByteLine(at, line)
            at += len(line)


def _rest_of_line(stream: io.BufferedReader) -> int:
    """Pass over the rest of a line; return its bytes."""
    passed = 0
    while piece := stream.readline(_BLOCK_BYTES):
        passed += len(piece)
        if piece.endswith(b"\n"):
            break
    return passed


def _skip(stream: io.BufferedReader, count: int) -> None:
    """Pass over bytes; a stream of PyArrow may not seek."""
    if stream.seekable():
        stream.seek(count)
        return
    while count and (data := stream.read(min(count, _BLOCK_BYTES))):
        count -= len(data)


def number_of(path: str, at: int) -> int:
    """Return the number of the line that begins at a byte, from 1 on."""
    number = 1
    with listing.read_errors(path), listing.opened(path) as stream:
        while at and (data := stream.read(min(at, _BLOCK_BYTES))):
            number += data.count(b"\n")
            at -= len(data)
    return number


def bad_line(path: str, number: int, problem: str, unit: str = "line", hint: str | None = None) -> BadLine:
    """Return the error about a line, or about a row of a file without lines."""
    shown = without_secrets(path)
    return BadLine(f"{shown}: {unit} {number:,}: {problem}", hint=hint, path=shown, **{unit: number})
