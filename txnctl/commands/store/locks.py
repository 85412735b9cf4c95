"""`txnctl store locks`: processes that have the store open, and the holder of the writer gate."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.commands.store.process_table import holder_cell, pid_cell
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.store_info import LockRow
    from txnctl.cli.context import Context

LOCKS = fields_of(
    "storage.reports.store_info:LockRow",
    {
        "lock": "What is held: the store (open), a lease (what ends with its process), or the writer gate.",
        "pid": "The process.",
        "state": "open, held, alive, stopped (SIGSTOP), dead, rebooted, or unknown-host.",
        "holder": "The process in words.",
        "host": Help("Its host; null for a store in a directory, but of leases.", heading=""),
        "program": Help("Its program, as far as it is known.", heading=""),
    },
)
_COLUMNS: tuple[Column[LockRow], ...] = (
    Column("LOCK", "text", lambda row: row.lock),
    Column("PID", "integer", lambda row: pid_cell(row.pid)),
    Column("STATE", "text", lambda row: row.state),
    Column("HOLDER", "text", lambda row: holder_cell(row.holder)),
)


@reads_store
@output(LOCKS, name_field="pid")
@example("txnctl store locks")
def locks(context: Context) -> None:
    """Show the processes that have the store open, and the present writer.

    The holder of the writer gate is writing at this moment. A `stopped` holder stops all writers: continue the process
    (kill -CONT) or end the process. A `dead` lease is freed by the next writer.

    On a server these are processes of all hosts. The server ends a holder of the writer gate that does nothing for ten
    seconds.
    """
    rows = context.store.reports.list_locks()
    if not rows and context.output == "table":
        context.note("no other process has the store open")
    context.show_list(rows, table=lambda shown: context.table_of(shown, _COLUMNS))
