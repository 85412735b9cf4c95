"""Maintenance of a store, as `store.maintenance`. A restore makes a store, and so is `Store.restore`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from storage.engine import Engine
from storage.values.arguments import check_flags

if TYPE_CHECKING:
    from storage.maintenance.backup import BackupResult
    from storage.maintenance.compact import CompactResult
    from storage.maintenance.copy import Progress
    from storage.maintenance.gc import CollectResult
    from storage.maintenance.upgrade import UpgradeResult
    from storage.verify.problem import Problem, Progress as VerifyProgress


class Maintenance:
    """Maintenance of one store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def backup_store(
        self, destination: str | os.PathLike[str], *, progress: Progress | None = None
    ) -> BackupResult:
        """Write a compacted copy of the store to `destination`, from one view, while other processes go on writing.

        Args:
            progress: called with the bytes written and the bytes of the whole file.

        Raises:
            AlreadyExists, StoreFull, StoreInvalid
        """
        from storage.maintenance.backup import backup_store

        return backup_store(self._engine, os.fspath(destination), progress)

    def compact_store(
        self,
        destination: str | os.PathLike[str] | None = None,
        *,
        progress: Progress | None = None,
        dry_run: bool = False,
        reason: str | None = None,
    ) -> CompactResult:
        """Rewrite the data file without its free pages. No other process may have the store open.

        Args:
            destination: a new directory for the compacted store, as on another disk; None to compact in place. The
                original is left unchanged, and must not be written any more: both are the same store.

        Raises:
            StoreInUse, StoreFull
            AlreadyExists, StoreInvalid: of the destination.
            OldFormat: a store of an earlier format is not compacted in place.
        """
        check_flags(dry_run=dry_run)
        from storage.maintenance.compact import compact_store, compact_to

        if destination is None:
            return compact_store(self._engine, progress, dry_run, reason)
        return compact_to(self._engine, os.fspath(destination), progress, dry_run, reason)

    def upgrade_store(self, *, dry_run: bool = False, reason: str | None = None) -> UpgradeResult:
        """Bring a store of an earlier format to the present one. No other process may have the store open.

        Earlier releases refuse the store afterwards. A store of the present format is left as it is.

        Raises:
            StoreInUse, StoreFull, WriterBusy
        """
        check_flags(dry_run=dry_run)
        from storage.maintenance.upgrade import upgrade_store

        return upgrade_store(self._engine, dry_run, reason)

    def collect_garbage(
        self, *, trust_clock: bool = False, dry_run: bool = False, reason: str | None = None
    ) -> CollectResult:
        """Free reader slots of dead processes, remains of deleted topics and tables, messages past their retention, and
        versions out of the window.

        Args:
            trust_clock: remove old messages and versions although the wall clock was moved: the operator has checked
                the clock.
        """
        check_flags(trust_clock=trust_clock, dry_run=dry_run)
        from storage.maintenance.gc import collect_garbage

        return collect_garbage(self._engine, trust_clock, dry_run, reason)

    def make_job_directory(self, name: str) -> str | None:
        """Make a directory for files of jobs within the store's own, if it is missing; return its path.

        None for a store on a server, which has no directory.

        Raises:
            NotPermitted, StoreFull, TooManyFiles, StoreInvalid
        """
        from storage.maintenance.store_directory import make_job_directory

        return make_job_directory(self._engine, name)

    def purge_deleted(self) -> int:
        """Remove the remains of deleted topics and tables, in steps of bounded size, and return their number."""
        from storage.admin.purge import purge_deleted

        return purge_deleted(self._engine.connection)

    def verify_store(
        self,
        *,
        full: bool = True,
        progress: VerifyProgress | None = None,
        checked: Callable[[int], None] | None = None,
    ) -> list[Problem]:
        """Check the invariants of the store, and return the problems found: none if the store is sound.

        Args:
            progress: called with the object being checked and the number of records done since the last call.
            checked: called at the end with the number of each invariant (docs/SEMANTICS.md) that was checked.
        """
        check_flags(full=full)
        from storage.client.table import Table
        from storage.verify import run

        open_table = partial(Table.open, self._engine)
        return run.run(self._engine.connection, open_table, full=full, progress=progress, checked=checked)
