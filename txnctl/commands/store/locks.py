"""`txnctl store locks`: processes that have the store open, and the holder of the writer gate."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import example, output, reads_store
from txnctl.commands.store.process_table import process_table
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

LOCKS = (
    Field(
        "lock",
        "text",
        "What is held: the store (open), a lease (what ends with its process), or the writer gate.",
    ),
    Field("pid", "integer", "The process."),
    Field("state", "text", "open, held, alive, stopped (SIGSTOP), dead, rebooted, or unknown-host."),
    Field("holder", "text", "The process in words."),
)


@reads_store
@output(LOCKS, name_field="pid")
@example("txnctl store locks")
def locks(context: Context) -> None:
    """Show the processes that have the store open, and the present writer.

    The holder of the writer gate is writing at this moment. A `stopped` holder stops all writers: continue the process
    (kill -CONT) or end the process. A `dead` lease is freed by the next writer.
    """
    rows = to_json(context.store.reports.list_locks())
    if not rows and context.output == "table":
        context.note("no other process has the store open")
    context.show_list(rows, table=lambda shown: process_table(context, shown, LOCKS))
