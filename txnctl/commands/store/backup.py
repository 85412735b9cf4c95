"""`txnctl store backup`: a copy of a store in use."""

from __future__ import annotations

import click

from txnctl.cli.decorators import (
    argument,
    effect,
    example,
    output,
    reads_store,
)
from txnctl.commands.store.copy_progress import CopyProgress
from txnctl.output.field import Help, fields_of
from txnctl.output.human import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

BACKED_UP = fields_of(
    "storage.maintenance.backup:BackupResult",
    {"path": "The directory of the backup.", "bytes": Help("Its size.", heading="SIZE", kind="size")},
)


@argument("destination", metavar="DEST", type=click.Path(readable=False), help="The directory to create.")
@reads_store
@effect("writes")
@output(BACKED_UP, name_field="path")
@example("txnctl store backup bank.backup", "txnctl store verify --store bank.backup")
def backup(context: Context, destination: str) -> None:
    """Copy a store in use.

    The copy is one instant of the store, without free pages. A build directory beside DEST is renamed at the end, so
    that DEST is there whole or not at all; a DEST that exists is left alone. Readers and writers go on meanwhile, but
    the file grows by every change.

    A store on a server is copied record by record into the directory, and both are compared. After an interrupt, run
    the same command again: it goes on.

    A backup is a store, and reading it makes no file there. To go on working, use `store restore`: a restore ends open
    transactions and sessions.
    """
    with CopyProgress(context, "Backup") as progress:
        row = context.store.maintenance.backup_store(destination, progress=progress)
    context.show(row, table=lambda shown: f"Backed up to {shown.path}: {size(shown.bytes)}.")
