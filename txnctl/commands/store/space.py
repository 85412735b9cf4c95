"""`txnctl store space`: where the space goes."""

from __future__ import annotations

from txnctl.cli.decorators import example, output, reads_store
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

SPACE = (
    Field("database", "text", "A part of the store; docs/FORMAT.md says what each holds."),
    Field("entries", "integer", "Its records.", heading="RECORDS"),
    Field("bytes", "size", "The pages that it takes.", heading="SIZE"),
    Field("depth", "integer", "Levels of its tree."),
)


@reads_store
@output(SPACE, name_field="database")
@example("txnctl store space")
def space(context: Context) -> None:
    """Show where the space goes.

    The largest first. What is left between their sum and the size of the file is free and will be used again.
    """
    context.show_list(
        sorted(context.store.reports.list_databases(), key=lambda row: (-row["bytes"], row["database"]))
    )
