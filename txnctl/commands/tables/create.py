"""`txnctl tables create`: an empty table."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, changes_store, example, output
from txnctl.cli.value_types import TABLE
from txnctl.fields.table import NAME
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


class CreatedTable(NamedTuple):
    """The name of the new table."""

    table: str


@argument("table", type=TABLE, help="The new table: letters, digits and -_.=:.")
@changes_store()
@output(fields_of(CreatedTable, NAME), name_field="table")
@example("txnctl tables create accounts")
def create(context: Context, table: str) -> None:
    """Create an empty table.

    Keys and values are bytes: keys of up to 400, in their order; values of up to 5 MiB.
    """
    context.store.create_table(table)
    context.show(CreatedTable(table), table=lambda row: f"Created table {row.table}.")
