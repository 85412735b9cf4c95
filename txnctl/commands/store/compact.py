"""`txnctl store compact`: a data file as small as the content."""

from __future__ import annotations

from txnctl.cli.decorators import (
    administrative,
    changes_store,
    example,
    output,
)
from txnctl.commands.store.copy_progress import CopyProgress
from txnctl.fields.change import DRY_RUN
from txnctl.output.field import Help, fields_of
from txnctl.output.human import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.maintenance.compact import CompactResult
    from txnctl.cli.context import Context

COMPACTED = fields_of(
    "storage.maintenance.compact:CompactResult",
    {
        "path": "The store's directory.",
        "bytes_before": Help("The size of data.mdb before.", heading="BEFORE", kind="size"),
        "bytes_after": Help(
            "The size of data.mdb now; in a dry run, what it would be.", heading="AFTER", kind="size"
        ),
        **DRY_RUN,
    },
)


@changes_store()
@administrative
@output(COMPACTED, name_field="path")
@example("txnctl store compact --dry-run")
@example("txnctl store compact --reason 'the disk is nearly full'")
def compact(context: Context) -> None:
    """Make the file of a store as small as the content.

    No further process may have the store open: otherwise exit code 5, with the process named. Free space inside the
    file is reused in any case; compacting returns the space to the disk. The new file is written beside the old one,
    by --dry-run too, so the disk needs room for both.
    """
    with CopyProgress(context, "Compact") as progress:
        row = context.store.maintenance.compact_store(
            progress=progress, dry_run=context.dry_run, reason=context.reason
        )
    context.show(row, table=_compacted)


def _compacted(row: CompactResult) -> list[str]:
    sizes = f"{row.path}: {size(row.bytes_before)} -> {size(row.bytes_after)}."
    if row.dry_run:
        return ["DRY RUN: nothing was changed.", "", f"Would compact {sizes}"]
    return [f"Compacted {sizes}"]
