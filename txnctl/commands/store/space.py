"""`txnctl store space`: where the space goes."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.fields.store import SPACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


@reads_store
@output(SPACE, name_field="database")
@example("txnctl store space")
def space(context: Context) -> None:
    """Show where the space goes.

    The largest first. The rest, up to the size of the file, is free and will be reused.
    """
    rows = context.store.reports.list_databases()
    context.show_list(sorted(rows, key=lambda row: (-row.bytes, row.database)))
