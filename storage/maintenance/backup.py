"""Back up a store while it is in use.

The copy is built in a build directory, synced, and renamed to the destination: no partial backup ever has that name.
"""

from __future__ import annotations

import os

from storage.actions import Action, Hint
from storage.disk import stores
from storage.disk.lmdb.create import building, install, write_lock_file
from storage.disk.lmdb.directory import data_bytes, resolved
from storage.engine import Engine
from storage.errors import InvalidValue
from storage.maintenance.copy import Progress, copy_data
from storage.maintenance.record_copy import copy_records
from storage.process.lock_file import FILE_NAME
from storage.values.named_tuple import NamedTuple


class BackupResult(NamedTuple):
    """The path of a finished backup, and the bytes of the data file."""

    path: str
    bytes: int


def backup_store(engine: Engine, destination: str, progress: Progress | None = None) -> BackupResult:
    """Write a compacted copy of the store to `destination`.

    The copy shows the store at one commit. Processes may write meanwhile: the copy is made from a view.

    Raises:
        InvalidValue: the destination is on a server.
        AlreadyExists, StoreFull, StoreInvalid
    """
    if stores.is_url(destination):
        raise InvalidValue(
            "a backup is a directory, and no store on a server",
            hint=Hint(
                "Make a store there with {}.", Action("Store.copy", engine.connection.path, destination)
            ),
        )
    if not engine.connection.environment.has_directory:
        return _backup_server(engine, destination, progress)
    destination = resolved(destination, os.path.abspath)
    with building(destination) as build_dir:
        copy_data(engine, build_dir, progress)
        write_lock_file(os.path.join(build_dir, FILE_NAME))
        size = data_bytes(build_dir)
        install(build_dir, destination)
    return BackupResult(destination, size)


def _backup_server(engine: Engine, destination: str, progress: Progress | None) -> BackupResult:
    """Copy the records of a store on a server into a directory, and compare both; the incarnation stays the same.

    An interrupted backup goes on when it is called again.
    """
    with stores.building(destination, engine.connection.clock) as build:
        copy_records(engine, build, progress)
        return BackupResult(build.destination, build.install())
