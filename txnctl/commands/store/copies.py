"""`txnctl store backup`, `restore` and `compact`: whole copies of a store."""

from __future__ import annotations

import click

from txnctl.cli.decorators import (
    administrative,
    argument,
    changes_store,
    effect,
    example,
    names_store,
    option,
    output,
    reads_store,
)
from txnctl.output.field import Field
from txnctl.output.human import plural, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from txnctl.cli.context import Context
    from txnctl.output.progress import Progress


class Copying:
    """The progress line of a copy, as a context manager, begun when the engine first says how large it is."""

    def __init__(self, context: Context, label: str) -> None:
        self._context = context
        self._label = label
        self._bar: Progress | None = None
        self._done_kib = 0

    def __call__(self, done_bytes: int, total_bytes: int) -> None:
        """So much of at most so much is written."""
        if self._bar is None:
            self._bar = self._context.progress(self._label, total=total_bytes >> 10, unit="KiB")
        self._bar.advance((done_bytes >> 10) - self._done_kib)
        self._done_kib = done_bytes >> 10

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)


BACKED_UP = (
    Field("path", "text", "The directory of the backup."),
    Field("bytes", "size", "Its size.", heading="SIZE"),
)


@argument("destination", metavar="DEST", type=click.Path(), help="The directory to create.")
@reads_store
@effect("writes")
@output(BACKED_UP, name_field="path")
@example("txnctl store backup bank.backup", "txnctl store verify --store bank.backup")
def backup(context: Context, destination: str) -> None:
    """Copy a store while it is in use.

    The copy is one instant of the store, without its free pages. It is built aside and renamed, so that DEST is there
    whole or not at all; what is at DEST already is left as it is. Others read and write meanwhile, but the file grows
    by what they change.

    A backup is a store of its own. To go on working from it, `store restore` it: that ends what was open.
    """
    with Copying(context, "Backup") as progress:
        row = context.store.maintenance.backup_store(destination, progress=progress)
    context.show(row, table=lambda shown: f"Backed up to {shown['path']}: {size(shown['bytes'])}.")


RESTORED = (
    Field("path", "text", "The directory of the new store."),
    Field("incarnation", "integer", "Its incarnation: one more than the backup's."),
    Field("transactionsAborted", "integer", "Transactions that were open in the backup."),
    Field("consumersDetached", "integer", "Consumers that were attached in the backup."),
    Field("dryRun", "boolean", "Whether nothing was created."),
)


@argument("source", metavar="SRC", type=click.Path(), help="The directory of the backup.")
@option(
    "--to",
    "destination",
    metavar="PATH",
    type=click.Path(),
    help="The directory to create. [default: that of --store]",
)
@names_store(effect="writes")
@administrative
@output(RESTORED, name_field="path")
@example("txnctl store restore bank.backup --to bank.store", setup="txnctl store backup bank.backup")
def restore(context: Context, source: str, destination: str | None) -> None:
    """Make a store from a backup.

    The new store is another incarnation: transactions that were open are aborted, consumers detached, and every topic
    epoch is raised, so that nobody who held something goes on as if nothing had happened. The backup stays as it is,
    and so does whatever is at PATH already (exit 4).
    """
    from storage import Store

    with Copying(context, "Restore") as progress:
        row = Store.restore(
            source,
            destination or context.store_path,
            program=context.program,
            progress=progress,
            dry_run=context.dry_run,
            reason=context.reason,
        )
    context.show(row, table=_restored)


def _restored(row: dict[str, Any]) -> list[str]:
    what = (
        f"{row['path']}, incarnation {row['incarnation']}: "
        f"{plural(row['transactionsAborted'], 'transaction')} aborted, "
        f"{plural(row['consumersDetached'], 'consumer')} detached."
    )
    if row["dryRun"]:
        return ["DRY RUN: nothing was created.", "", f"Would restore to {what}"]
    return [f"Restored to {what}"]


COMPACTED = (
    Field("path", "text", "The store's directory."),
    Field("bytesBefore", "size", "The size of data.mdb before.", heading="BEFORE"),
    Field("bytesAfter", "size", "The size of data.mdb now; in a dry run, what it would be.", heading="AFTER"),
    Field("dryRun", "boolean", "Whether nothing was changed."),
)


@changes_store()
@administrative
@output(COMPACTED, name_field="path")
@example("txnctl store compact --dry-run")
@example("txnctl store compact --reason 'the disk is nearly full'")
def compact(context: Context) -> None:
    """Make the file of a store as small as what it holds.

    Nobody else may have the store open meanwhile: if somebody has, it ends with exit code 5 and says who. Free space
    inside the file is used again by itself; compacting gives it back to the disk. The new file is written beside the
    old one, by --dry-run too, so the disk needs room for both.
    """
    with Copying(context, "Compact") as progress:
        row = context.store.maintenance.compact_store(
            progress=progress, dry_run=context.dry_run, reason=context.reason
        )
    context.show(row, table=_compacted)


def _compacted(row: dict[str, Any]) -> list[str]:
    sizes = f"{row['path']}: {size(row['bytesBefore'])} -> {size(row['bytesAfter'])}."
    if row["dryRun"]:
        return ["DRY RUN: nothing was changed.", "", f"Would compact {sizes}"]
    return [f"Compacted {sizes}"]
