"""Restore a backup as a new incarnation of its store.

Open transactions are aborted, consumers detached and every topic epoch raised (docs/SEMANTICS.md), so that no process
that used the store before the backup can go on in the restored one.
"""

from __future__ import annotations

import os

from storage import audit_trail
from storage.disk import stores
from storage.disk.lmdb.create import building, install, write_lock_file
from storage.disk.lmdb.directory import resolved
from storage.engine import Engine
from storage.errors import NotAStore, StoreNotFound
from storage.json_form import Flat
from storage.maintenance.copy import Progress, copy_data
from storage.maintenance.upgrade import upgrade
from storage.process.lock_file import FILE_NAME
from storage.reincarnation import Inheritance, Reincarnation, reincarnate
from storage.txn.reaper import EVERY
from storage.values.arguments import check_flags
from storage.values.durability import Durability
from storage.values.named_tuple import NamedTuple


class RestoreResult(NamedTuple):
    """A restored store. `format_before` is the format of the backup, from which the copy was upgraded on the way."""

    path: str
    format_before: int
    reincarnation: Flat[Reincarnation]
    dry_run: bool


def restore_store(
    source: str,
    destination: str,
    *,
    program: str | None = None,
    progress: Progress | None = None,
    durability: Durability | None = None,
    dry_run: bool = False,
    reason: str | None = None,
) -> RestoreResult:
    """Make a new store at `destination` from a backup. A source that is in use is copied from one view.

    A backup of an earlier format becomes a store of the present format. To or from a server the records are copied.

    Args:
        durability: of the new store, as `Store.create` has it.
        dry_run: build and check the new store, and then drop it.

    Raises:
        AlreadyExists, StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreFull
    """
    check_flags(dry_run=dry_run)
    audit_trail.check_reason(reason)
    if stores.is_url(source) or stores.is_url(destination):
        from storage.maintenance.store_copy import CopyOptions, copy_store

        options = CopyOptions(program, progress, None, durability, dry_run, reason)
        copied = copy_store(source, destination, options, "store restore")
        return RestoreResult(copied.path, copied.format_before, copied.reincarnation, dry_run)
    stores.check_local(destination, durability)
    destination = resolved(destination, os.path.abspath)
    with (
        open_source(source, program) as backed_up,
        building(destination) as build_dir,
    ):
        copy_data(backed_up, build_dir, progress)
        write_lock_file(os.path.join(build_dir, FILE_NAME))
        with Engine.open(build_dir, program=program) as engine:
            format_before = engine.connection.environment.format_number
            with engine.connection.view() as view:
                inherited = Inheritance.load(view)
            upgrade(engine, reason)
            result = engine.connection.write(
                lambda batch: reincarnate(
                    batch,
                    engine.coordinator,
                    engine.process,
                    inherited,
                    action="store restore",
                    reason=reason,
                ),
                naming=EVERY,
            )
        if not dry_run:
            install(build_dir, destination)
    return RestoreResult(destination, format_before, result, dry_run)


def open_source(source: str, program: str | None) -> Engine:
    """Open the backup; a missing one is no store to create or to choose by `--store`."""
    try:
        return Engine.open(source, read_only=True, program=program)
    except (StoreNotFound, NotAStore) as error:
        error.hint = "Name the directory of a backup, or a store."
        raise
