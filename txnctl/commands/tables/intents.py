"""`txnctl tables intents`: write intents and the transactions behind."""

from __future__ import annotations

from storage.values.txn_state import TransactionState
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import TABLE
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.owner import LAST_USER_HELP, alive, other_user
from txnctl.fields.table import KEY, NAME, name_of
from txnctl.output.bytes_field import shown_bytes
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.table.report import IntentRow
    from txnctl.cli.context import Context

INTENTS = fields_of(
    "storage.table.report:IntentRow",
    {
        **NAME,
        **KEY,
        "deleted": Help("Whether the key is to be deleted.", heading="DELETES"),
        "version_ns": Help("The version that the value will have.", heading=""),
        "txn_id": Help("The transaction that holds the key.", heading="TXN"),
        "state": Help(
            "Its state: OPEN; COMMITTED or ABORTED where the intent only waits to be finalised.", kind="text"
        ),
        "priority": "Its priority: who meets it with a lower one is aborted.",
        "age_ms": Help("How long ago it began.", heading="AGE"),
        "owner": "Who began it: user@host:pid (program).",
        "owner_state": "alive, stopped, dead, rebooted, unknown-host; detached: no process holds it.",
        **LAST_USER_HELP,
    },
)


def _is_open(row: IntentRow) -> bool:
    """An intent of an ended transaction waits for no process."""
    return row.owner.state is TransactionState.OPEN


_COLUMNS: tuple[Column[IntentRow], ...] = (
    Column("TABLE", "id", lambda row: row.table),
    Column("KEY", "text", lambda row: shown_bytes(row.key)),
    Column("DELETES", "boolean", lambda row: row.deleted, rank=4),
    Column("TXN", "id", lambda row: row.owner.txn_id),
    Column("STATE", "text", lambda row: row.owner.state, rank=3),
    Column("PRIORITY", "text", lambda row: row.owner.facts.priority, rank=5),
    Column("AGE", "duration", lambda row: row.owner.facts.age_ms, rank=1),
    Column("OWNER", "list", lambda row: row.owner.facts.owner),
    Column("ALIVE", "text", lambda row: alive(row.owner.facts) if _is_open(row) else None, rank=2),
    Column("LAST USER", "list", lambda row: other_user(row.owner.facts), rank=2),
)

_SETUP = (
    "txnctl tables create accounts",
    "txnctl transactions begin --priority low",
    "txnctl tables put accounts B1 100 --txn 0:1",
)


@argument("table", type=TABLE, required=False, help="Only those of this table. [default: of all tables]")
@option("-n", "--count", "limit", type=WholeNumber(1), metavar="N", help="At most so many. [default: all]")
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
    if context.output == "name":
        context.show_list(name_of(row.key) for row in rows)
    else:
        context.show_list(rows, table=lambda shown: context.table_of(shown, _COLUMNS))
