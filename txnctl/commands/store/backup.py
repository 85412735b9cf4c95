"""`txnctl store backup`: a copy of a store in use."""

from __future__ import annotations

import click

from storage.json_form import to_json
from txnctl.cli.decorators import (
    argument,
    effect,
    example,
    output,
    reads_store,
)
from txnctl.commands.store.copy_progress import CopyProgress
from txnctl.output.field import Field
from txnctl.output.human import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


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
    with CopyProgress(context, "Backup") as progress:
        row = to_json(context.store.maintenance.backup_store(destination, progress=progress))
    context.show(row, table=lambda shown: f"Backed up to {shown['path']}: {size(shown['bytes'])}.")
