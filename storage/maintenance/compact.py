"""Rewrite the data file of a store without its free pages: in place, or in a new directory, as on a disk with room.

In a new directory the store is the same store: id, incarnation, positions, open detached transactions and leased
sessions go on there. The original is left as it is, since its disk may have no room for a mark; so nothing but the
operator keeps the two apart from then on.
"""

from __future__ import annotations

import os

from storage import audit_trail
from storage.disk.lmdb.create import building, check_outside, install, write_lock_file
from storage.disk.lmdb.directory import DATA, data_bytes, resolved
from storage.engine import Engine
from storage.maintenance.copy import Progress, copy_data
from storage.maintenance.store_alone import store_alone
from storage.maintenance.store_directory import environment_of
from storage.maintenance.upgrade import upgrade
from storage.process.lock_file import FILE_NAME
from storage.txn.reaper import EVERY
from storage.values.named_tuple import NamedTuple

_ON_SERVER = "The server frees space by itself (VACUUM); {} makes a compact copy in a directory."
_OTHERWISE = ", or make a backup instead: it is compacted as well"


class Compacted(NamedTuple):
    """A compaction as the audit trail stores it."""

    bytes_before: int
    bytes_copied: int


class CompactedElsewhere(NamedTuple):
    """A compaction into a new directory, as the audit trail of the new store has it."""

    original: str
    bytes_before: int
    bytes_copied: int


class CompactResult(NamedTuple):
    """The size of the data file before and after.

    Attributes:
        path: the directory of the compacted store.
        original: the directory that was compacted from, and left unchanged; None for compacting in place.
        format_before: the format of the original; the compacted store has the present one.
    """

    path: str
    original: str | None
    format_before: int
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
    environment = environment_of(engine, "compacted", _ON_SERVER)
    connection.check_writable()
    before = data_bytes(connection.path)
    with (
        store_alone(engine, _OTHERWISE),
        building(os.path.join(connection.path, "compacted"), connection.path) as build_dir,
    ):
        copy_data(engine, build_dir, progress)
        after = _finish(engine, build_dir, reason, Compacted(before, data_bytes(build_dir)))
        if not dry_run:
            environment.replace_data(os.path.join(build_dir, DATA))
        format_number = connection.environment.format_number
    return CompactResult(connection.path, None, format_number, before, after, dry_run)


def compact_to(
    engine: Engine,
    destination: str,
    progress: Progress | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> CompactResult:
    """Write the store without its free pages to a new directory, while only this process has the store open.

    Nothing is written in the store's own directory. A store of an earlier format is upgraded on the way.

    Args:
        dry_run: write the new store to measure the size, then discard it.

    Raises:
        StoreInUse: a second process has the store open; the error names every such process.
        AlreadyExists, StoreFull, StoreInvalid, BadInput
    """
    audit_trail.check_reason(reason)
    environment_of(engine, "compacted", _ON_SERVER)
    connection, destination = engine.connection, resolved(destination, os.path.abspath)
    path, before = connection.path, data_bytes(connection.path)
    check_outside(destination)
    # The new store belongs to the owner of the old one, also where root makes it.
    with store_alone(engine, _OTHERWISE), building(destination, path) as build_dir:
        copy_data(engine, build_dir, progress)
        effects = CompactedElsewhere(path, before, data_bytes(build_dir))
        after = _finish(engine, build_dir, reason, effects)
        if not dry_run:
            install(build_dir, destination)
    return CompactResult(destination, path, connection.environment.format_number, before, after, dry_run)


def _finish(
    engine: Engine, build_dir: str, reason: str | None, effects: Compacted | CompactedElsewhere
) -> int:
    """Write the audit record into the new file, so that record and file are put in place together.

    Return the bytes of the finished file.
    """
    process = engine.process
    write_lock_file(os.path.join(build_dir, FILE_NAME))
    with Engine.open(build_dir, clock=engine.connection.clock) as copy:
        upgrade(copy, reason)
        # `EVERY` prevents reaping: owners hold leases in the lock file of the store, so in the copy all look dead.
        copy.connection.write(
            lambda batch: audit_trail.record(batch, process, "store compact", "store", reason, effects),
            naming=EVERY,
        )
        figures = environment_of(copy, "compacted", _ON_SERVER).info()
    # Cut off the preallocated zeros of this write: a compacted file ends with the last page in use.
    descriptor = os.open(os.path.join(build_dir, DATA), os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, (figures["last_pgno"] + 1) * figures["psize"])
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return data_bytes(build_dir)
