"""Back up a store while it is in use.

The copy is built in a build directory, synced, and renamed to the destination: no partial backup ever has that name.
"""

from __future__ import annotations

import os

from storage.disk.lmdb.create import building, install, write_lock_file
from storage.disk.lmdb.directory import data_bytes, resolved
from storage.engine import Engine
from storage.maintenance.copy import Progress, copy_data
from storage.process.lock_file import FILE_NAME
from storage.values.named_tuple import NamedTuple


class BackupResult(NamedTuple):
    """The path of a finished backup, and the bytes of the data file."""

    path: str
    bytes: int


def backup_store(engine: Engine, destination: str, progress: Progress | None = None) -> BackupResult:
    """Write a compacted copy of the store to `destination`.

    The copy shows the store at one commit. Processes may write meanwhile: LMDB copies from a view.

    Raises:
        AlreadyExists, StoreFull, StoreInvalid
    """
    destination = resolved(destination, os.path.abspath)
    with building(destination) as build_dir:
        copy_data(engine, build_dir, progress)
        write_lock_file(os.path.join(build_dir, FILE_NAME))
        size = data_bytes(build_dir)
        install(build_dir, destination)
    return BackupResult(destination, size)
