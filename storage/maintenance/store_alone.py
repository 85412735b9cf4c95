"""Take the store lock alone, for changes that further processes with the store open could not follow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from storage.actions import Hint, resume
from storage.engine import Engine
from storage.errors import StoreInUse, StoreInvalid
from storage.maintenance.store_directory import environment_of
from storage.process.identity import describe, is_stopped, started
from storage.process.lock_file import FILE_NAME, processes_with


@contextmanager
def store_alone(engine: Engine, otherwise: str = "") -> Iterator[None]:
    """Hold the store lock exclusively within the block.

    Args:
        otherwise: the rest of the hint, for an operator who cannot end further processes.

    Raises:
        StoreInUse: a second process has the store open; the error names every such process.
    """
    connection = engine.connection
    locks = environment_of(engine, "taken alone", "Stop its processes instead.").locks
    if not locks.own_store():
        pids = processes_with(os.path.join(connection.path, FILE_NAME))
        raise _in_use(connection.path, pids, otherwise)
    try:
        yield
    finally:
        # Refused, the lock stays exclusive until the store is closed: no error of what was done within the block.
        with suppress(StoreInvalid):
            locks.share_store()


def _in_use(path: str, pids: list[int], otherwise: str) -> StoreInUse:
    """The error for a store that further processes have open; a stopped process must be continued before."""
    holders = [describe(pid, started(pid)) for pid in pids]
    stopped = [pid for pid in pids if is_stopped(pid, started(pid))]
    way = Hint("Close it there")
    if stopped:
        way = Hint("Continue the stopped process with `{}`, and close it there", resume(stopped[0]))
    return StoreInUse(
        f"{path} is open in {', '.join(holders) or 'another process'}",
        hint=Hint(f"{{}}{otherwise}.", way),
        holders=holders,
    )
