"""The side log of a process under test: what it is about to do, and what the store has acknowledged.

A line is one write, so that a kill leaves it whole or out. Everything acknowledged is synced before the process goes
on: nothing that the log claims is lost with the process.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

Line = dict[str, Any]


class Journal:
    """The log of one process at a time; the next one goes on with it."""

    def __init__(self, path: str) -> None:
        self.lines = read(path)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def note(self, event: str, kind: str, **fields: Any) -> int:
        """Write a line; its number."""
        number = len(self.lines)
        line = {"number": number, "event": event, "kind": kind, "ns": time.monotonic_ns(), **fields}
        self.lines.append(line)
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")
        if event == "did":
            os.fsync(self._descriptor)
        return number

    def attempt(self, kind: str, **fields: Any) -> Attempt:
        """`with journal.attempt("send", …) as result:` notes what is tried, and with `result` that it was done."""
        return Attempt(self, kind, fields)

    def of(self, event: str, kind: str) -> list[Line]:
        """The lines of that event and kind."""
        return [line for line in self.lines if line["event"] == event and line["kind"] == kind]


class Attempt:
    """Something tried: noted before, and after it was acknowledged."""

    def __init__(self, journal: Journal, kind: str, fields: Line) -> None:
        self._journal = journal
        self._kind = kind
        self._fields = fields
        self.result: Line = {}

    def __enter__(self) -> Attempt:
        self.number = self._journal.note("try", self._kind, **self._fields)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._journal.note("did", self._kind, tried=self.number, **{**self._fields, **self.result})


def read(path: str) -> list[Line]:
    """All lines of a log; none if there is none yet."""
    try:
        with open(path, "rb") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []
