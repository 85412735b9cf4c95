"""`txnctl tables versions`: the history of one key."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, numbers_are_arguments, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.commands.tables.key import key_of, shown_key, with_base64
from txnctl.fields.table import VALUE, VERSION
from txnctl.output.bytes_field import bytes_cell
from txnctl.output.column import Column
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.table.report import VersionRow
    from txnctl.cli.context import Context

FIELDS = fields_of(
    "storage.table.report:VersionRow",
    {
        **VERSION,
        "state": "The state of that transaction: OPEN, COMMITTED or ABORTED.",
        "intent": "Whether it is a write intent: not committed, or not finalised yet.",
        "deleted": "Whether it says that the key was deleted.",
        **VALUE,
    },
)

_COLUMNS: tuple[Column[VersionRow], ...] = (
    Column("VERSION", "id", lambda row: row.version_ns),
    Column("WRITTEN", "time", lambda row: row.version_at_ms, rank=1),
    Column("TXN", "id", lambda row: row.txn_id),
    Column("STATE", "text", lambda row: row.state, rank=2),
    Column("INTENT", "boolean", lambda row: row.intent, rank=3),
    Column("VALUE", "text", lambda row: "(deleted)" if row.deleted else bytes_cell(row.value)),
)
_SETUP = (
    "txnctl tables create accounts",
    "txnctl tables put accounts B1 100",
    "txnctl tables put accounts B1 90",
)


@argument("table", type=TABLE, help="The table.")
@argument("key", help="The key.")
@with_base64
@numbers_are_arguments
@reads_store
@output(FIELDS, name_field="version")
@example("txnctl tables versions accounts B1", setup=_SETUP)
@example(
    "V=$(txnctl tables versions accounts B1 -o name | tail -1)",
    'txnctl tables get accounts B1 --at "$V"',
    setup=_SETUP,
)
def versions(context: Context, table: str, key: str, is_base64: bool) -> None:
    """List all that is kept under a key.

    The newest comes first. A write intent of an unfinished transaction stands on top; older versions are kept for
    reads in the past (--at), as long as `store config table-retention` says.
    """
    key_bytes = key_of(key, is_base64=is_base64)
    rows = context.store.table(table).versions(key_bytes)
    if not rows and context.output == "table":
        context.note(f"table {table} keeps nothing under {shown_key(key_bytes)}")
    context.show_list(rows, table=lambda shown: context.table_of(shown, _COLUMNS))
