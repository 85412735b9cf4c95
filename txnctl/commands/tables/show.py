"""`txnctl tables show`: the facts about one table."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.fields.table import AS_OF, CREATED, NAME, RETENTION
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


_SHOWN = (
    NAME,
    Field("tableId", "integer", "Its number: a table created again under the name has another."),
    *CREATED,
    Field("keys", "integer", "Keys that have a value."),
    RETENTION,
    *AS_OF,
)


@argument("table", type=TABLE, help="The table.")
@reads_store
@output(_SHOWN, name_field="table")
@example("txnctl tables show accounts", setup="txnctl tables create accounts")
def show(context: Context, table: str) -> None:
    """Show the facts about one table.

    `tables stats` shows counts and the transactions that hold keys, `tables scan` the rows.
    """
    stats = to_json(context.store.table(table).stats())
    context.show({field.name: stats[field.name] for field in _SHOWN})
