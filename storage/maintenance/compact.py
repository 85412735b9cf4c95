"""Rewrite the data file of a store without its free pages, in place."""

from __future__ import annotations

import os

from storage import audit_trail
from storage.disk.create import building, write_lock_file
from storage.disk.directory import DATA
from storage.engine import Engine
from storage.maintenance.copy import Progress, copy_data, data_bytes
from storage.maintenance.store_alone import store_alone
from storage.process.lock_file import FILE_NAME
from storage.txn.reaper import EVERY
from storage.values.named_tuple import NamedTuple


class Compacted(NamedTuple):
    """A compaction as the audit trail stores it."""

    bytes_before: int
    bytes_copied: int


class CompactResult(NamedTuple):
    """The size of the data file before and after."""

    path: str
    bytes_before: int
    bytes_after: int
    dry_run: bool


def compact_store(
    engine: Engine, progress: Progress | None = None, dry_run: bool = False, reason: str | None = None
) -> CompactResult:
    """Rewrite the data file without its free pages, in place, while only this process has the store open.

    Args:
        dry_run: write the new file to measure the size, then discard the new file and retain the old one.

    Raises:
        StoreInUse: a second process has the store open; the error names every such process.
        OldFormat, StoreFull, BadInput
    """
    audit_trail.check_reason(reason)
    connection = engine.connection
    connection.check_writable()
    bytes_before = data_bytes(connection.path)
    with (
        store_alone(engine, ", or make a backup instead: it is compacted as well"),
        building(os.path.join(connection.path, "compacted"), connection.path) as build_dir,
    ):
        copy_data(engine, build_dir, progress)
        _note_compacting(engine, build_dir, reason, bytes_before)
        bytes_after = data_bytes(build_dir)
        if not dry_run:
            connection.environment.replace_data(os.path.join(build_dir, DATA))
    return CompactResult(connection.path, bytes_before, bytes_after, dry_run)


def _note_compacting(engine: Engine, build_dir: str, reason: str | None, bytes_before: int) -> None:
    """Write the audit record into the new file, so that record and file are put in place together."""
    effects = Compacted(bytes_before, data_bytes(build_dir))
    process = engine.process
    write_lock_file(os.path.join(build_dir, FILE_NAME))
    with Engine.open(build_dir, clock=engine.connection.clock) as copy:
        # `EVERY` prevents reaping: owners hold leases in the lock file of the store, so in the copy all look dead.
        copy.connection.write(
            lambda batch: audit_trail.record(batch, process, "store compact", "store", reason, effects),
            naming=EVERY,
        )
        figures = copy.connection.environment.info()
    # Cut off the preallocated zeros of this write: a compacted file ends with the last page in use.
    with open(os.path.join(build_dir, DATA), "r+b") as file:
        file.truncate((figures["last_pgno"] + 1) * figures["psize"])
        os.fsync(file.fileno())
