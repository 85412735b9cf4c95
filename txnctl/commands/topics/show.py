"""`txnctl topics show`: the facts about one topic."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.topic import AS_OF, COUNTS, CREATED, LIMITS, NAMES
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context


SHOWN = (
    *NAMES,
    *CREATED,
    *LIMITS,
    *COUNTS,
    Field("publishers", "list", "The names of the producers connected to it."),
    Field("waitingPublishers", "integer", "Producers that wait for their turn.", heading="WAITING PRODUCERS"),
    Field("subscriptions", "list", "The names of its subscriptions."),
    *AS_OF,
)


@argument("topic", type=TOPIC, help="The topic.")
@reads_store
@output(SHOWN, name_field="name")
@example("txnctl topics show orders", setup="txnctl topics create orders")
def show(context: Context, topic: str) -> None:
    """Show the facts about one topic.

    `topics stats` shows backlogs and blocked messages, `topics stats-internal` the ledgers and cursors.
    """
    stats = to_json(context.store.reports.topic_stats(topic))
    stats["subscriptions"] = list(stats["subscriptions"])
    stats["publishers"] = [publisher["producerName"] for publisher in stats["publishers"]]
    context.show({field.name: stats[field.name] for field in SHOWN})
