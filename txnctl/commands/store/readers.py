"""`txnctl store readers`: reading processes, and how far each view lags behind."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import example, output, reads_store
from txnctl.commands.store.process_table import process_table
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


READERS = (
    Field("pid", "integer", "The process."),
    Field("state", "text", "reading (it holds a view), idle, or stopped (SIGSTOP)."),
    Field("commit", "integer", "The commit that its view shows; null while it holds none."),
    Field("behind", "integer", "Commits since then. Pages freed by them cannot be reused yet."),
    Field("holder", "text", "The process in words."),
)


@reads_store
@output(READERS, name_field="pid")
@example("txnctl store readers")
def readers(context: Context) -> None:
    """Show the reading processes, and how far behind each is.

    A reader holds the view of one commit for moments only; a backup or a full verify holds a view from start to end.
    Meanwhile the file grows instead of reusing freed pages.
    """
    rows = to_json(context.store.reports.list_readers())
    if not rows and context.output == "table":
        context.note("no process reads the store at this moment")
    context.show_list(rows, table=lambda shown: process_table(context, shown, READERS))
