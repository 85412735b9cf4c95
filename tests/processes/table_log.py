"""What a worker of the serializability test did, a line for each transaction and each read-committed read.

A line stands in the file before the commit that it announces is asked for, so that whatever is committed in the store
was announced. A kill may tear the last line; what it was to announce was not asked for then. Times are those of the
machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.storage.table.history import Get, Operation, Put, Scan
from tests.storage.table.recency import CommittedRead

ASKED, ANSWERED, DROPPED, READ = "asked", "answered", "dropped", "read"

UNKNOWN = -1
"""The version of a read that was told the value alone."""

_KINDS = {"g": Get, "p": Put}


def encode(operations: list[Operation]) -> list[list[Any]]:
    """Operations as JSON has them."""
    return [_encode(each) for each in operations]


def _encode(each: Operation) -> list[Any]:
    if isinstance(each, Scan):
        return ["s", each.start, each.end, [list(row) for row in each.rows]]
    return ["g" if isinstance(each, Get) else "p", *each]


def decode(operations: list[list[Any]]) -> list[Operation]:
    """The operations of a line."""
    return [
        Scan(words[0], words[1], [Get(*row) for row in words[2]]) if kind == "s" else _KINDS[kind](*words)
        for kind, *words in operations
    ]


class Log:
    """The log of one process, and its count of finished transactions."""

    def __init__(self, path: str) -> None:
        self._name = os.path.basename(path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._count_descriptor = os.open(f"{path}.count", flags & ~os.O_APPEND, 0o600)
        self._number = self._count = 0

    def _write(self, line: list[Any]) -> None:
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")

    def ask(self, version: int, began: int, operations: list[Operation]) -> int:
        """A commit is about to be asked for; its number. The version is 0 if it is not known."""
        self._number += 1
        now = time.monotonic_ns()
        self._write([ASKED, self._number, version, began, now, encode(operations)])
        return self._number

    def answer(self, number: int, version: int) -> None:
        """That commit was answered."""
        self._write([ANSWERED, number, version, time.monotonic_ns()])
        self.count()

    def drop(
        self, version: int, txn: str | None, number: int, code: str, operations: list[Operation]
    ) -> None:
        """A transaction is over, and not committed: for this reason, refused its commit of this number if not 0."""
        self._write([DROPPED, version, txn, number, code, encode(operations)])
        self.count()

    def read(self, reads: list[CommittedRead]) -> None:
        """Read-committed reads were made."""
        for each in reads:
            self._write([READ, *each])

    def count(self) -> None:
        self._count += 1
        os.pwrite(self._count_descriptor, self._count.to_bytes(8, "big"), 0)


def finished(directory: Path) -> int:
    """How many transactions all workers have finished, of those that are logged in a directory."""
    return sum(int.from_bytes(path.read_bytes(), "big") for path in directory.glob("*.count"))


class Asked(NamedTuple):
    """A transaction whose commit was asked for: `answered` is None if no answer came, `is_refused` if it was no."""

    name: str
    version: int
    began: int
    asked: int
    answered: int | None
    is_refused: bool
    operations: list[Operation]


class Dropped(NamedTuple):
    """One that was not committed."""

    name: str
    version: int
    txn: str | None
    code: str
    operations: list[Operation]


def read_log(path: Path) -> tuple[list[Asked], list[Dropped], list[CommittedRead]]:
    """All that one worker did."""
    asked: dict[int, Asked] = {}
    dropped: list[Dropped] = []
    reads: list[CommittedRead] = []
    for kind, *words in _lines(path):
        if kind == READ:
            reads.append(CommittedRead(*words))
        elif kind == ASKED:
            number, version, began, now, operations = words
            name = f"{path.name}:{number}"
            asked[number] = Asked(name, version, began, now, None, False, decode(operations))
        elif kind == ANSWERED:
            number, version, now = words
            asked[number] = asked[number]._replace(version=version, answered=now)
        else:
            version, txn, number, code, operations = words
            if number:
                asked[number] = asked[number]._replace(is_refused=True)
            dropped.append(Dropped(f"{path.name}:-{len(dropped)}", version, txn, code, decode(operations)))
    return list(asked.values()), dropped, reads


def _lines(path: Path) -> Iterator[list[Any]]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)
