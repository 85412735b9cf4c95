"""`txnctl subscriptions list`: subscriptions with their backlogs and verdicts."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import (
    TOPIC,
)
from txnctl.fields.subscription import BACKLOG, MODE, NAMES, ROW, VERDICT, level_of, living, short_topic
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_COLUMNS = (
    Field("topicName", "id", "The topic.", heading="TOPIC"),
    NAMES[1],
    *MODE,
    Field("markDeletePosition", "position", "The cursor.", heading="MARK-DELETE"),
    *BACKLOG[:5],
    Field("living", "integer", "Consumers.", heading="CONSUMERS"),
    VERDICT,
)


@argument("topic", type=TOPIC, required=False, help="Only those of this topic. [default: of all topics]")
@reads_store
@output(ROW, name_field="subscription")
@example(
    "txnctl subscriptions list orders",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
@example("txnctl subscriptions list -o json")
def list_(context: Context, topic: str | None) -> None:
    """List subscriptions, with their backlogs and verdicts."""
    rows = to_json(context.store.reports.list_subscriptions(topic))
    if not rows and context.output == "table":
        context.note("there are no subscriptions" + (f" on {topic}" if topic is not None else ""))
    context.show_list(rows, table=lambda shown: _table(context, shown))


def _table(context: Context, rows: Sequence[Row]) -> str:
    cells = [
        {
            **row,
            "topicName": short_topic(row),
            "subscriptionIsolationLevel": level_of(row),
            "living": living(row),
        }
        for row in rows
    ]
    return context.table_of(cells, _COLUMNS)
