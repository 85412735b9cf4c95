"""`txnctl store compact`: a data file as small as the content."""

from __future__ import annotations

import click

from txnctl.cli.decorators import (
    administrative,
    changes_store,
    example,
    option,
    output,
)
from txnctl.commands.store.copy_progress import CopyProgress
from txnctl.commands.store.upgraded_copy import upgraded_words
from txnctl.fields.change import DRY_RUN
from txnctl.output.field import Help, fields_of
from txnctl.output.human import size
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.maintenance.compact import CompactResult
    from txnctl.cli.context import Context

COMPACTED = fields_of(
    "storage.maintenance.compact:CompactResult",
    {
        "path": "The directory of the compacted store.",
        "original": Help(
            "With --to, the directory compacted from, which is unchanged; else null.", heading=""
        ),
        "format_before": Help(
            "The format that the store had; the compacted one has the present.", heading=""
        ),
        "bytes_before": Help("The size of data.mdb before.", heading="BEFORE", kind="size"),
        "bytes_after": Help(
            "The size of data.mdb now; in a dry run, what it would be.", heading="AFTER", kind="size"
        ),
        **DRY_RUN,
    },
)


@option(
    "--to",
    "destination",
    metavar="DIR",
    type=click.Path(readable=False),
    help="Write the compacted store to this new directory, as on another disk.",
)
@changes_store()
@administrative
@output(COMPACTED, name_field="path")
@example("txnctl store compact --dry-run")
@example("txnctl store compact --reason 'the disk is nearly full'")
@example("txnctl store compact --to other.store", "txnctl --store other.store store verify")
def compact(context: Context, destination: str | None) -> None:
    """Make the file of a store as small as the content.

    No further process may have the store open: otherwise exit code 5, with the process named. Free space inside the
    file is reused in any case; compacting returns the space to the disk. The new file is written beside the old one,
    by --dry-run too, so the disk needs room for both.

    --to writes the compacted store to a new directory, and nothing beside the old one, so the disk of the old one may
    be full. DIR is there whole or not at all; a DIR that exists is left alone (exit 4). It is the same store:
    positions, sessions with a lease and detached transactions go on there. The old directory is left as it is. Write in
    one of the two only: start every program with the new one, and remove the old one. A copy to work beside the
    original is made by `store backup` and `store restore`.
    """
    with CopyProgress(context, "Compact") as progress:
        row = context.store.maintenance.compact_store(
            destination, progress=progress, dry_run=context.dry_run, reason=context.reason
        )
    context.show(row, table=_compacted)


def _compacted(row: CompactResult) -> list[str]:
    places = row.path if row.original is None else f"{row.original} to {row.path}"
    sizes = f"{places}: {size(row.bytes_before)} -> {size(row.bytes_after)}."
    if row.dry_run:
        return ["DRY RUN: nothing was changed.", "", f"Would compact {sizes}"]
    if row.original is None:
        return [f"Compacted {sizes}"]
    verify = line("store verify", path=row.path)
    return [
        f"Compacted {sizes}",
        *upgraded_words(row.format_before),
        f"Go on with {row.path} alone: name it with --store or TXNCTL_STORE.",
        f"{row.original} is unchanged, and the same store: remove it after `{verify}`.",
    ]
