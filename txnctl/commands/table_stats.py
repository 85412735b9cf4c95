"""`txnctl tables stats`: what a table holds, and who holds keys of it."""

from __future__ import annotations

from txnctl.commands.table_fields import TABLE as FIELDS
from txnctl.options import argument, example, output, reads_store
from txnctl.params import TABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from txnctl.context import Context

    Row = dict[str, Any]

_SETUP = ("txnctl tables create accounts", "txnctl tables put accounts B1 100")


@argument("table", type=TABLE, help="The table.")
@reads_store
@output(FIELDS, name_field="table")
@example("txnctl tables stats accounts", setup=_SETUP)
@example("txnctl tables stats accounts -o json", setup=_SETUP)
def stats(context: Context, table: str) -> None:
    """Show what a table holds, and who holds keys of it.

    A write intent is a value that its transaction has not committed yet, or that was decided and not yet finalised:
    whoever writes the key next does that, and `store gc` all of them.
    """
    context.show(context.store.table(table).stats(), table=lambda row: _report(context, row))


def _report(context: Context, row: Row) -> Iterator[str]:
    from txnctl.commands.topic_stats import heading
    from txnctl.output.human import duration, plural

    yield heading(context, row["table"], plural(row["keys"], "key"), row["asOfMs"])
    yield f"  rows        {row['rows']:,} stored, created {row['createdAt']}"
    yield f"  versions    {plural(row['versions'], 'older one')}, kept for {duration(row['retentionMs'])}"
    yield f"  intents     {row['intents']:,}"
    if row["intents"]:
        command = f"txnctl tables intents {row['table']}"
        yield ""
        yield f"Next: {context.style(command, 'cyan')}"
