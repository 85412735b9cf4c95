"""`txnctl store restore`: a store made from a backup."""

from __future__ import annotations

import click

from txnctl.cli.decorators import (
    administrative,
    argument,
    example,
    names_store,
    option,
    output,
)
from txnctl.commands.store.copy_progress import CopyProgress
from txnctl.commands.store.durability import durability_option
from txnctl.commands.store.upgraded_copy import upgraded_words
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.maintenance.restore import RestoreResult
    from txnctl.cli.context import Context

RESTORED = fields_of(
    "storage.maintenance.restore:RestoreResult",
    {
        "path": "The directory of the new store.",
        "format_before": Help("The format of the backup; the new store has the present one.", heading=""),
        "incarnation": "Its incarnation: one more than the backup's.",
        "transactions_aborted": "Transactions that were open in the backup.",
        "consumers_detached": "Consumers that were attached in the backup.",
        "dry_run": "Whether nothing was created.",
    },
)


@argument(
    "source", metavar="SRC", type=click.Path(readable=False), help="The directory of the backup, or a URL."
)
@option(
    "--to",
    "destination",
    metavar="PATH",
    type=click.Path(readable=False),
    help="The directory or URL to create. [default: that of --store]",
)
@durability_option
@names_store(effect="writes")
@administrative
@output(RESTORED, name_field="path")
@example("txnctl store restore bank.backup --to bank.store", setup="txnctl store backup bank.backup")
def restore(context: Context, source: str, destination: str | None, durability: str | None) -> None:
    """Make a store from a backup.

    The new store has a new incarnation: open transactions are aborted, consumers detached, and every topic epoch is
    raised, so that no client of the old store goes on unnoticed. The backup is left alone, and so is a PATH that
    exists (exit 4). A backup of an earlier release is upgraded on the way: the new store has the present format.

    SRC and PATH may be a URL too: the records are then copied as `store copy` does, and an interrupted restore goes on
    when it is run again.
    """
    from storage import Store
    from storage.disk.stores import check_typed

    for name in filter(None, (source, destination)):
        check_typed(name)
    with CopyProgress(context, "Restore") as progress:
        row = Store.restore(
            source,
            destination or context.store_path,
            program=context.program,
            progress=progress,
            durability=durability,
            dry_run=context.dry_run,
            reason=context.reason,
        )
    context.show(row, table=_restored)


def _restored(row: RestoreResult) -> list[str]:
    ended = row.reincarnation
    what = (
        f"{row.path}, incarnation {ended.incarnation}: "
        f"{plural(ended.transactions_aborted, 'transaction')} aborted, "
        f"{plural(ended.consumers_detached, 'consumer')} detached."
    )
    upgraded = upgraded_words(row.format_before)
    if row.dry_run:
        return ["DRY RUN: nothing was created.", "", f"Would restore to {what}", *upgraded]
    return [f"Restored to {what}", *upgraded]
