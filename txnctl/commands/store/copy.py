"""`txnctl store copy`: a store moved between directories and servers."""

from __future__ import annotations

import click

from txnctl.cli.decorators import (
    administrative,
    argument,
    effect,
    example,
    output,
)
from txnctl.commands.store.copy_progress import CopyProgress, VerifyProgress
from txnctl.commands.store.durability import durability_option
from txnctl.commands.store.upgraded_copy import upgraded_words
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.maintenance.store_copy import CopyResult
    from txnctl.cli.context import Context

COPIED = fields_of(
    "storage.maintenance.store_copy:CopyResult",
    {
        "source": "The directory or URL of the source.",
        "path": "The directory or URL of the new store.",
        "format_before": Help("The format of the source; the new store has the present one.", heading=""),
        "records": "Records of both, as each was read at the end.",
        "bytes": Help("Bytes of the records.", heading="SIZE", kind="size"),
        "messages": "Messages among them, delivered or not.",
        "rows": "Rows of tables among them, with those that only an open transaction has written.",
        "checksum": Help("The digest over all records, the same of both.", heading=""),
        "is_resumed": Help("Whether the copy went on where an interrupted one had stopped.", heading=""),
        "written": Help("Records that this run wrote: fewer than all where the copy went on.", heading=""),
        "removed": Help("Records of an interrupted copy that the source has no more.", heading=""),
        "incarnation": "The incarnation of the new store: one more than the source's.",
        "transactions_aborted": "Transactions that were open in the source.",
        "consumers_detached": "Consumers that were attached in the source.",
        "dry_run": "Whether nothing was created.",
    },
)


@argument("source", metavar="SRC", type=click.Path(readable=False), help="The directory or URL to copy.")
@argument(
    "destination", metavar="DEST", type=click.Path(readable=False), help="The directory or URL to create."
)
@durability_option
@effect("writes")
@administrative
@output(COPIED, name_field="path")
@example("txnctl store copy bank.store other.store", setup="txnctl store init bank.store")
@example("txnctl store copy bank.store other.store --dry-run", setup="txnctl store init bank.store")
def copy(context: Context, source: str, destination: str, durability: str | None) -> None:
    """Copy a store to a new one, between directories and servers.

    SRC and DEST are a directory or the URL of a store on a server, each way:

        txnctl store copy bank.store 'postgresql://db.example.com/bank?store=bank'

    SRC may be in use: the copy is one instant of the store. Stop its programs first, if they are to go on with DEST:
    SRC changes no more with DEST, and keeps what is written meanwhile.

    After an interrupt, run the same command again: it goes on, and writes only records that differ. Until the end there
    is no store at DEST; the unfinished copy lies beside it, in the directory `.NAME.copy`, or in the schema `NAME$copy`
    of the server. A DEST that exists is left alone (exit 4).

    In the end both are compared as read, by number and checksum of all records, and the copy is verified. Like a
    restored backup it is a new incarnation: open transactions are aborted, consumers detached, and every topic epoch is
    raised. A source of an earlier format is upgraded on the way.

    --dry-run does all this, and then removes the copy.
    """
    from storage import Store
    from storage.disk.stores import check_typed

    check_typed(source)
    check_typed(destination)
    with CopyProgress(context, "Copy") as progress, VerifyProgress(context) as verify_progress:
        row = Store.copy(
            source,
            destination,
            program=context.program,
            progress=progress,
            verify_progress=verify_progress,
            durability=durability,
            dry_run=context.dry_run,
            reason=context.reason,
        )
    context.show(row, table=_copied)


def _copied(row: CopyResult) -> list[str]:
    content, ended = row.content, row.reincarnation
    what = (
        f"{row.path}, incarnation {ended.incarnation}: {plural(content.messages, 'message')},"
        f" {plural(content.rows, 'row')}; {plural(ended.transactions_aborted, 'transaction')} aborted,"
        f" {plural(ended.consumers_detached, 'consumer')} detached."
    )
    compared = (
        f"Both have the same {plural(content.records, 'record')} ({size(content.bytes)}), checksum"
        f" {content.checksum}."
    )
    upgraded = upgraded_words(row.format_before)
    if row.dry_run:
        return ["DRY RUN: nothing was created.", "", f"Would copy to {what}", compared, *upgraded]
    resumed = [f"Went on with an interrupted copy: wrote {plural(row.written, 'record')}."]
    return [
        f"Copied to {what}",
        *(resumed if row.is_resumed else []),
        compared,
        *upgraded,
        f"Go on with the copy: `{line('store info', path=row.path)}`.",
    ]
