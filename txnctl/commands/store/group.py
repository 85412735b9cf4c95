"""`txnctl store`: create a store, look after it, back it up."""

from __future__ import annotations

import click

from txnctl.cli.declaration import Group
from txnctl.cli.decorators import argument, example, names_store, output, reads_store
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

store = Group(
    "store",
    "Create a store, look after it, back it up.",
    elsewhere={
        "verify": (
            "txnctl.commands.store.verify:verify",
            "Check every record of a store and every rule that must hold between them.",
        ),
        "locks": (
            "txnctl.commands.store.holders:locks",
            "Show who has the store open, and who may write now.",
        ),
        "readers": ("txnctl.commands.store.holders:readers", "Show who reads, and how far behind."),
        "space": ("txnctl.commands.store.space:space", "Show where the space goes."),
        "backup": ("txnctl.commands.store.copies:backup", "Copy a store while it is in use."),
        "restore": ("txnctl.commands.store.copies:restore", "Make a store from a backup."),
        "compact": (
            "txnctl.commands.store.copies:compact",
            "Make the file of a store as small as what it holds.",
        ),
        "gc": ("txnctl.commands.store.gc:gc", "Free what nobody needs any more."),
        "config": (
            "txnctl.commands.store.config:config",
            "Show or change the settings that a store keeps for all who use it.",
        ),
    },
)

CREATED = (
    Field("path", "text", "The store's directory."),
    Field("format", "integer", "The number of its format."),
    Field("storeId", "id", "Its identity, which a copy keeps.", heading="STORE ID"),
)


@store.command("init")
@argument(
    "path", required=False, type=click.Path(), help="The directory to create. [default: that of --store]"
)
@names_store(effect="writes")
@output(CREATED, name_field="path")
@example("txnctl store init bank.store")
@example("txnctl store init --store orders.store")
def init(context: Context, path: str | None) -> None:
    """Create an empty store.

    It is built aside and renamed into place, so that it is there whole or not at all. Directories above it are
    created where they are missing. If anything but an empty directory is at PATH, it is left as it is (exit 4).
    """
    from storage import Store
    from storage.errors import InvalidValue

    typed = next(each for each in context.settings() if each.name == "store")
    if path is not None and typed.source.startswith("option"):
        raise InvalidValue("the new store is named twice, by PATH and by --store", hint="Leave one out.")
    where = context.store_path if path is None else path
    if not where:
        raise InvalidValue("the path of a store is not empty")
    Store.create(where)
    with context.open_store(where, read_only=True) as created:
        facts = created.reports.store_info()
    context.show(
        {field.name: facts[field.name] for field in CREATED},
        table=lambda row: f"Created store {row['path']}.",
    )


INFO = (
    *CREATED,
    Field("createdAt", "time", "When it was created.", heading="CREATED"),
    Field("createdMs", "timeMs", "The same as an integer.", heading=""),
    Field("incarnation", "integer", "Raised whenever a backup is restored."),
    Field("commits", "integer", "Durable commits since it was created."),
    Field("topics", "integer", "Topics."),
    Field("openTransactions", "integer", "Transactions that are open."),
    Field("transactions", "integer", "Transactions remembered, open ones included."),
    Field("lastTimestamp", "id", "The last timestamp issued, in nanoseconds.", heading=""),
    Field("tables", "integer", "Tables."),
    Field("tableRetentionMs", "duration", "How long superseded versions of rows are kept."),
    Field("reapPolicy", "text", "What the next writer aborts: all, overdue, or nothing (manual)."),
    Field("dataBytes", "size", "The size of data.mdb.", heading="FILE SIZE"),
    Field("usedBytes", "size", "How much of it was ever used.", heading="USED"),
    Field("mapBytes", "size", "Address space it may grow into.", heading="MAP"),
    Field("readersInUse", "integer", "Slots of the reader table that are taken.", heading="READERS"),
    Field("readersMax", "integer", "Slots that it has."),
)


@store.command("info")
@reads_store
@output(INFO, name_field="path")
@example("txnctl store info")
def info(context: Context) -> None:
    """Show what a store is: its format, its age, its size and what it holds."""
    context.show(context.store.reports.store_info())
