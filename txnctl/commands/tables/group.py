"""`txnctl tables`: keys and values, with serializable transactions."""

from __future__ import annotations

from txnctl.cli.declaration import Group
from txnctl.cli.decorators import argument, changes_store, example, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.fields.table import AS_OF, CREATED, NAME, RETENTION, TABLE as ROW
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

tables = Group(
    "tables",
    "Tables: keys and values, with serializable transactions.",
    elsewhere={
        "stats": ("txnctl.commands.tables.stats:stats", "Show what a table holds, and who holds keys of it."),
        "delete": ("txnctl.commands.tables.delete:delete", "Delete a table with all its rows."),
        "get": ("txnctl.commands.tables.get:get", "Print the value of a key: its bytes and a newline."),
        "put": ("txnctl.commands.tables.put:put", "Write a value under a key."),
        "rm": ("txnctl.commands.tables.put:rm", "Delete a key."),
        "scan": ("txnctl.commands.tables.scan:scan", "Print the rows of a table, or of a range of its keys."),
        "versions": ("txnctl.commands.tables.versions:versions", "List all that is kept under a key."),
        "intents": ("txnctl.commands.tables.conflicts:intents", "List write intents: who holds which keys."),
        "history": (
            "txnctl.commands.tables.conflicts:history",
            "List recent conflicts: which transaction lost which key to which.",
        ),
        "export": (
            "txnctl.commands.tables.export:export",
            "Print a table as NDJSON or CSV, to be imported again.",
        ),
        "import": (
            "txnctl.commands.tables.import_:import_",
            "Write rows of a file into a table, all or none.",
        ),
    },
)


@tables.command("list")
@reads_store
@output(ROW, name_field="table")
@example("txnctl tables list", setup="txnctl tables create accounts")
@example("txnctl tables list -o name")
def list_(context: Context) -> None:
    """List the tables."""
    rows = context.store.reports.list_tables()
    if not rows and context.output == "table":
        context.note("there are no tables yet; txnctl tables create makes one")
    context.show_list(rows)


@tables.command("create")
@argument("table", type=TABLE, help="The new table: letters, digits and -_.=:.")
@changes_store()
@output((NAME,), name_field="table")
@example("txnctl tables create accounts")
def create(context: Context, table: str) -> None:
    """Create an empty table.

    Keys and values are bytes: keys of up to 400, in their order; values of up to 5 MiB.
    """
    context.store.create_table(table)
    context.show({"table": table}, table=lambda row: f"Created table {row['table']}.")


_SHOWN = (
    NAME,
    Field("tableId", "integer", "Its number: a table created again under the name has another."),
    *CREATED,
    Field("keys", "integer", "Keys that have a value."),
    RETENTION,
    *AS_OF,
)


@tables.command("show")
@argument("table", type=TABLE, help="The table.")
@reads_store
@output(_SHOWN, name_field="table")
@example("txnctl tables show accounts", setup="txnctl tables create accounts")
def show(context: Context, table: str) -> None:
    """Show the facts about one table.

    `tables stats` shows what is stored and who holds keys of it, `tables scan` the rows.
    """
    stats = context.store.table(table).stats()
    context.show({field.name: stats[field.name] for field in _SHOWN})
