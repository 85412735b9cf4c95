"""`txnctl tables create`: an empty table."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.decorators import argument, changes_store, example, output
from txnctl.cli.value_types import TABLE
from txnctl.commands.if_not_exists import CREATED_NOW, create_unless_there, if_not_exists
from txnctl.fields.table import NAME
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


class CreatedTable(NamedTuple):
    """The name of the table."""

    table: str
    created: bool


@argument("table", type=TABLE, help="The new table: letters, digits and -_.=:.")
@if_not_exists
@changes_store()
@output(fields_of(CreatedTable, {**NAME, **CREATED_NOW}), name_field="table")
@example("txnctl tables create accounts")
@example("txnctl tables create accounts --if-not-exists", setup="txnctl tables create accounts")
def create(context: Context, table: str, may_exist: bool) -> None:
    """Create an empty table.

    Keys and values are bytes: keys of up to 400, in their order; values of up to 5 MiB.
    """
    created = create_unless_there(may_exist, lambda: context.store.create_table(table))
    context.show(CreatedTable(table, created), table=_created)


def _created(row: CreatedTable) -> str:
    return f"Created table {row.table}." if row.created else f"Table {row.table} exists already."
