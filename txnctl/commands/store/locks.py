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
        "session": Help(
            "On a server, its session: `SELECT pg_terminate_backend(SESSION)` ends that.", heading=""
        ),
        "user": Help(
            "On a server, the role of the session; of a lease, the user of the process.", heading=""
        ),
        "address": Help(
            "On a server, the address that the session comes from, if this role may see it.", heading=""
        ),
        "activity": Help("On a server, what the session does, if this role may see it.", heading=""),
        "held_ms": "On a server, for how long the writer gate is known to be held; null where nothing tells.",
    },
)
_COLUMNS: tuple[Column[LockRow], ...] = (
    Column("LOCK", "text", lambda row: row.lock),
    Column("PID", "integer", lambda row: pid_cell(row.pid)),
    Column("STATE", "text", lambda row: row.state),
    Column("HOLDER", "text", lambda row: holder_cell(row.holder)),
)
_ON_SERVER: tuple[Column[LockRow], ...] = (
    *_COLUMNS[:3],
    Column("HELD", "duration", lambda row: row.held_ms),
    Column("SESSION", "integer", lambda row: pid_cell(row.session)),
    *_COLUMNS[3:],
)


@reads_store
@output(LOCKS, name_field="pid")
@example("txnctl store locks")
def locks(context: Context) -> None:
    """Show the processes that have the store open, and the present writer.

    The holder of the writer gate is writing at this moment. A `stopped` holder stops all writers: continue the process
    (kill -CONT) or end the process. A `dead` lease is freed by the next writer.

    On a server these are processes of all hosts; a client that is no process of txnctl is named by its session. HELD is
    for how long the writer gate is known to be held. The server ends a holder of txnctl that does nothing for ten
    seconds; `SELECT pg_terminate_backend(SESSION)`, run there, ends every session.
    """
    columns = _COLUMNS if context.store.connection.environment.has_directory else _ON_SERVER
    rows = context.store.reports.list_locks()
    if not rows and context.output == "table":
        context.note("no other process has the store open")
    context.show_list(rows, table=lambda shown: context.table_of(shown, columns))
