"""The process whose writes are recorded for power cuts: the workload of the crash sweep, with a mark at each journal line.

    python -m tests.faults.recorded_workload LIBRARY DIRECTORY ROUNDS

The record goes to DIRECTORY/record, the journal to DIRECTORY/journal, the stores below DIRECTORY/disk. Before the
record begins the directories exist, and nothing else.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tests.faults.traps import Mode, Traps
from tests.processes import crash_workload
from tests.processes.crash_workload import Workload
from tests.processes.journal import Journal

MAPPED = ("lock.mdb", "reads.cache", "received.marks", "store.metrics")
"""Files that are written through memory: what the kernel would write back is noted with each acknowledgement."""


class MarkedJournal(Journal):
    """A journal whose every line is a mark in the record."""

    def __init__(self, path: str, traps: Traps, store: str) -> None:
        self._traps = traps
        self._store = store
        super().__init__(path)

    def note(self, event: str, kind: str, **fields: Any) -> int:
        number = super().note(event, kind, **fields)
        if event == "did":
            for name in MAPPED:
                path = os.path.join(self._store, name)
                if os.path.exists(path):
                    self._traps.note_mapped(path)
        self._traps.mark(f"{event} {kind} {number}".encode())
        return number


def main(library: str, directory: str, rounds: str) -> None:
    """See the module."""
    crash_workload.shorten_steps()
    log = os.open(os.path.join(directory, "record"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    traps = Traps(library)
    traps.install()
    store = os.path.join(directory, "disk", "store")
    traps.arm(Mode.RECORD, log=log)
    workload = Workload(store, MarkedJournal(os.path.join(directory, "journal"), traps, store))
    workload.recover()
    for _ in range(int(rounds)):
        workload.round()
    traps.disarm()
    workload.store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
