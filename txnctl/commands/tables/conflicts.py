"""`txnctl tables intents` and `history`: who holds which keys, and who lost one to whom."""

from __future__ import annotations

import click

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.fields.table import KEY, NAME
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from txnctl.cli.context import Context

    Row = dict[str, Any]

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

CONFLICTS = (
    Field("number", "integer", "Conflicts are numbered as they happen.", heading=""),
    Field("happenedAt", "time", "When it happened.", heading="WHEN"),
    Field("happenedMs", "timeMs", "The same as an integer.", heading=""),
    Field(
        "kind",
        "text",
        "push: the loser held the key, and the winner wanted it; held: the winner held it, and the loser wanted it; "
        "read: it had been read, version: written, by a younger one; too-old: the loser was older than what is kept.",
    ),
    Field("loser", "id", "The transaction that was aborted."),
    Field("loserVersion", "id", "Its timestamp.", heading=""),
    Field("winner", "id", "The other one; null where it is not known.", heading="LOST TO"),
    Field("winnerVersion", "id", "Its timestamp; null where it is not known.", heading=""),
    Field("table", "id", "The table; null where it was about none."),
    *KEY,
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
    """List write intents: who holds which keys.

    Nobody waits for an intent. Who meets one of an OPEN transaction is aborted, or aborts it: the higher priority
    goes on; if they are equal, the younger one. An intent whose transaction has ended stands in nobody's way.
    """
    store = context.store
    found = store.reports.list_intents(limit=limit) if table is None else store.table(table).intents(limit)
    if not found and context.output == "table":
        context.note("there are no write intents" + (f" in {table}" if table is not None else ""))
    _show(context, found, INTENTS)


@argument("table", type=TABLE, required=False, help="Only those over its keys. [default: of all tables]")
@option("-n", "--limit", type=click.IntRange(1), metavar="N", help="At most so many. [default: all]")
@reads_store
@output(CONFLICTS, name_field="loser")
@example(
    "txnctl tables history accounts",
    setup=(*_SETUP, "txnctl tables put accounts B1 90"),
)
@example("txnctl tables history -n 10 -o json")
def history(context: Context, table: str | None, limit: int | None) -> None:
    """List recent conflicts: which transaction lost which key to which.

    The newest comes first; the store remembers the last 1,000. Where one key is there again and again, the
    transactions that use it should be shorter, or retry with a higher --priority.
    """
    store = context.store
    found = store.reports.list_conflicts(limit) if table is None else store.table(table).history(limit)
    if not found and context.output == "table":
        context.note("no conflicts" + (f" over keys of {table}" if table is not None else ""))
    _show(context, found, CONFLICTS)


def _show(context: Context, found: Sequence[Row], fields: Sequence[Field]) -> None:
    from txnctl.fields.table import name_of, with_bytes

    rows = [with_bytes(row, "key") for row in found]
    if context.output == "name" and fields is INTENTS:
        rows = [name_of(row["key"]) for row in found]
    context.show_list(rows, table=lambda shown: _table(context, shown, fields))


def _table(context: Context, rows: Sequence[Row], fields: Sequence[Field]) -> str:
    from txnctl.output.bytes_field import bytes_cell

    cells = [{**row, "key": bytes_cell(row, "key")} for row in rows]
    return context.table_of(cells, fields)
