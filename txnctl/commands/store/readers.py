"""`txnctl store readers`: reading processes, and how far each view lags behind."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.commands.store.process_table import holder_cell, pid_cell
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.store_info import ReaderRow
    from txnctl.cli.context import Context

READERS = fields_of(
    "storage.reports.store_info:ReaderRow",
    {
        "pid": "The process.",
        "state": "reading (it holds a view), idle, or stopped (SIGSTOP).",
        "commit": "The commit that its view shows; null while it holds none.",
        "behind": "Commits since then. Pages freed by them cannot be reused yet.",
        "holder": "The process in words.",
        "host": Help("On a server, the host of the client, or its address.", heading=""),
        "program": Help("On a server, the name that the client gives itself.", heading=""),
        "age_ms": "On a server, how long the transaction has been open; null where this role may not see it.",
    },
)
_COLUMNS: tuple[Column[ReaderRow], ...] = (
    Column("PID", "integer", lambda row: pid_cell(row.pid)),
    Column("STATE", "text", lambda row: row.state),
    Column("COMMIT", "integer", lambda row: row.commit),
    Column("BEHIND", "integer", lambda row: row.behind),
    Column("HOLDER", "text", lambda row: holder_cell(row.holder)),
)
_ON_SERVER: tuple[Column[ReaderRow], ...] = (
    Column("PID", "integer", lambda row: pid_cell(row.pid)),
    Column("STATE", "text", lambda row: row.state),
    Column("AGE", "duration", lambda row: row.age_ms),
    Column("HOLDER", "text", lambda row: holder_cell(row.holder)),
)


@reads_store
@output(READERS, name_field="pid")
@example("txnctl store readers")
def readers(context: Context) -> None:
    """Show the reading processes, and how far behind each is.

    A reader holds the view of one commit for moments only; a backup or a full verify holds a view from start to end.
    Meanwhile the file grows instead of reusing freed pages.

    On a server these are the transactions of all clients in the database, the oldest first: as long as one is open,
    VACUUM removes no row that died since its begin, and the tables of all stores there grow. A client that is no
    process of txnctl is named by its session, which `SELECT pg_terminate_backend(SESSION)` ends.
    """
    columns = _COLUMNS if context.store.connection.environment.has_directory else _ON_SERVER
    rows = context.store.reports.list_readers()
    if not rows and context.output == "table":
        context.note("no process reads the store at this moment")
    context.show_list(rows, table=lambda shown: context.table_of(shown, columns))
