"""`txnctl subscriptions list`: subscriptions with their backlogs and verdicts."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import (
    TOPIC,
)
from txnctl.fields.subscription import ROW, backlog_columns, mode_columns, short_topic
from txnctl.output.column import Column
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage.reports.stats import SubscriptionRow
    from txnctl.cli.context import Context

LISTED = fields_of("storage.reports.stats:SubscriptionRow", ROW)

_COLUMNS: tuple[Column[SubscriptionRow], ...] = (
    Column("TOPIC", "id", short_topic),
    Column("SUBSCRIPTION", "id", lambda row: row.subscription),
    *mode_columns(lambda row: row.stats),
    Column("MARK-DELETE", "position", lambda row: row.stats.mark_delete_position, rank=6),
    *backlog_columns(lambda row: row.stats),
    Column("VERDICT", "text", lambda row: row.stats.verdict),
)


@argument("topic", type=TOPIC, required=False, help="Only those of this topic. [default: of all topics]")
@reads_store
@output(LISTED, name_field="subscription")
@example(
    "txnctl subscriptions list orders",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
@example("txnctl subscriptions list -o json")
def list_(context: Context, topic: str | None) -> None:
    """List subscriptions, with their backlogs and verdicts."""
    rows = context.store.reports.list_subscriptions(topic)
    if not rows and context.output == "table":
        context.note("there are no subscriptions" + (f" on {topic}" if topic is not None else ""))
    context.show_list(rows, table=lambda shown: context.table_of(shown, _COLUMNS))
