"""`txnctl tables history`: recent conflicts, with the loser and the winner of each key."""

from __future__ import annotations

import click

from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.commands.tables.key_rows import show_key_rows
from txnctl.fields.table import KEY
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

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

    The newest comes first; the store remembers the last 1,000. Where one key appears again and again, the transactions
    that use it should be shorter, or retry with a higher --priority.
    """
    store = context.store
    conflicts = store.reports.list_conflicts(limit) if table is None else store.table(table).history(limit)
    if not conflicts and context.output == "table":
        context.note("no conflicts" + (f" over keys of {table}" if table is not None else ""))
    show_key_rows(context, conflicts, CONFLICTS)
