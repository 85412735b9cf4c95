"""`txnctl tables list`: every table with counts of keys and versions."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.fields.table import TABLE
from txnctl.output.field import fields_of
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

LISTED = fields_of("storage.table.report:TableRow", TABLE)


@reads_store
@output(LISTED, name_field="table")
@example("txnctl tables list", setup="txnctl tables create accounts")
@example("txnctl tables list -o name")
def list_(context: Context) -> None:
    """List the tables."""
    rows = context.store.reports.list_tables()
    if not rows and context.output == "table":
        context.note(f"there are no tables yet; `{line('tables create', 'TABLE')}` makes one")
    context.show_list(rows)
