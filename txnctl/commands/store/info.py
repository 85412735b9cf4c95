"""`txnctl store info`: format, age, size and content of a store."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import example, output, reads_store
from txnctl.fields.store import CREATED
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


INFO = (
    *CREATED,
    Field("createdAt", "time", "When it was created.", heading="CREATED"),
    Field("createdMs", "timeMs", "The same as an integer.", heading=""),
    Field("incarnation", "integer", "Raised whenever a backup is restored."),
    Field("commits", "integer", "Durable commits since it was created."),
    Field("topics", "integer", "Topics."),
    Field("openTransactions", "integer", "Transactions that are open."),
    Field("transactions", "integer", "Transactions remembered, open ones included."),
    Field("lastTimestamp", "id", "The last timestamp issued, in nanoseconds.", heading=""),
    Field("tables", "integer", "Tables."),
    Field("tableRetentionMs", "duration", "How long superseded versions of rows are kept."),
    Field("reapPolicy", "text", "What the next writer aborts: all, overdue, or nothing (manual)."),
    Field("dataBytes", "size", "The size of data.mdb.", heading="FILE SIZE"),
    Field("usedBytes", "size", "How much of it was ever used.", heading="USED"),
    Field("mapBytes", "size", "Address space it may grow into.", heading="MAP"),
    Field("readersInUse", "integer", "Slots of the reader table that are taken.", heading="READERS"),
    Field("readersMax", "integer", "Slots that it has."),
)


@reads_store
@output(INFO, name_field="path")
@example("txnctl store info")
def info(context: Context) -> None:
    """Show the facts about a store: format, age, size and counts of objects."""
    context.show(to_json(context.store.reports.store_info()))
