"""`txnctl tables show`: the facts about one table."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.fields.table import CREATED, NAME, RETENTION
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


class ShownTable(NamedTuple):
    """The facts about a table."""

    table: str
    table_id: int
    created_at_ms: int
    keys: int
    retention_ms: int
    as_of_at_ms: int


SHOWN = fields_of(
    ShownTable,
    {
        **NAME,
        "table_id": "Its number: a table created again under the name has another.",
        **CREATED,
        "keys": "Keys that have a value.",
        **RETENTION,
        "as_of_at_ms": Help("The moment of which the report speaks.", heading="AS OF"),
    },
)


@argument("table", type=TABLE, help="The table.")
@reads_store
@output(SHOWN, name_field="table")
@example("txnctl tables show accounts", setup="txnctl tables create accounts")
def show(context: Context, table: str) -> None:
    """Show the facts about one table.

    `tables stats` shows counts and the transactions that hold keys, `tables scan` the rows.
    """
    counts = context.store.table(table).stats().counts
    context.show(
        ShownTable(
            counts.table,
            counts.table_id,
            counts.created_at_ms,
            counts.keys,
            counts.retention_ms,
            counts.as_of_at_ms,
        )
    )
