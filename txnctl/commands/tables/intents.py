"""`txnctl tables intents`: write intents and the transactions behind."""

from __future__ import annotations

import click

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.commands.tables.key_rows import show_key_rows
from txnctl.fields.table import KEY, NAME
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

INTENTS = (
    NAME,
    *KEY,
    Field("deleted", "boolean", "Whether the key is to be deleted.", heading="DELETES"),
    Field("version", "id", "The version that the value will have.", heading=""),
    Field("txnId", "id", "The transaction that holds the key.", heading="TXN"),
    Field(
        "state",
        "text",
        "Its state: OPEN; COMMITTED or ABORTED where the intent only waits to be finalised.",
    ),
    Field("priority", "text", "Its priority: who meets it with a lower one is aborted."),
    Field("ageMs", "duration", "How long ago it began.", heading="AGE"),
    Field("owner", "text", "Who began it: user@host:pid (program)."),
    Field(
        "ownerState", "text", "alive, stopped, dead, rebooted, unknown-host; detached: no process holds it."
    ),
)
_SETUP = (
    "txnctl tables create accounts",
    "txnctl transactions begin --priority low",
    "txnctl tables put accounts B1 100 --txn 0:1",
)


@argument("table", type=TABLE, required=False, help="Only those of this table. [default: of all tables]")
@option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most so many. [default: all]")
@reads_store
@output(INTENTS, name_field="key")
@example("txnctl tables intents accounts", setup=_SETUP)
@example("txnctl tables intents -o json", setup=_SETUP)
def intents(context: Context, table: str | None, limit: int | None) -> None:
    """List write intents: the keys held by each transaction.

    No transaction waits for an intent. At an intent of an OPEN transaction one of the two transactions is aborted: the
    higher priority goes on or, with equal priorities, the younger transaction. An intent of an ended transaction
    blocks no writer.
    """
    store = context.store
    rows = store.reports.list_intents(limit=limit) if table is None else store.table(table).intents(limit)
    if not rows and context.output == "table":
        context.note("there are no write intents" + (f" in {table}" if table is not None else ""))
    show_key_rows(context, rows, INTENTS, named_by_key=True)
