"""Stores that are made from others: `Store.restore` and `Store.copy`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from storage.values.durability import Durability
from storage.values.names import named

if TYPE_CHECKING:
    from storage.maintenance.restore import RestoreResult
    from storage.maintenance.store_copy import CopyResult


class StoreMaker:
    """See the module."""

    @classmethod
    def restore(
        cls, source: str | os.PathLike[str], destination: str | os.PathLike[str], *,
        program: str | None = None, progress: Callable[[int, int], None] | None = None,
        durability: Durability | str | None = None, dry_run: bool = False, reason: str | None = None,
    ) -> RestoreResult:  # fmt: skip
        """Make a new store from a backup: open transactions are aborted, consumers detached, epochs raised.

        Args:
            durability: as `create` has it.

        Raises:
            AlreadyExists, StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreFull
        """
        from storage.maintenance.restore import restore_store

        return restore_store(
            os.fspath(source), os.fspath(destination), program=program, progress=progress,
            durability=named(Durability, durability, "durability"), dry_run=dry_run, reason=reason,
        )  # fmt: skip

    @classmethod
    def copy(
        cls, source: str | os.PathLike[str], destination: str | os.PathLike[str], *,
        program: str | None = None, progress: Callable[[int, int], None] | None = None,
        verify_progress: Callable[[str, int], None] | None = None, durability: Durability | str | None = None,
        dry_run: bool = False, reason: str | None = None,
    ) -> CopyResult:  # fmt: skip
        """Copy a store, record by record, from a directory or URL to a new directory or URL.

        The copy is a new incarnation, as a restored backup is. Both are compared, and the copy is verified, before the
        copy gets its name. After an interrupt the same call goes on.

        Args:
            durability: as `create` has it.

        Raises:
            AlreadyExists, StoreNotFound, NotAStore, UnknownFormat, CorruptStore, StoreInUse, StoreFull
        """
        from storage.maintenance.store_copy import CopyOptions, copy_store

        options = CopyOptions(
            program, progress, verify_progress, named(Durability, durability, "durability"), dry_run, reason
        )
        return copy_store(os.fspath(source), os.fspath(destination), options)
