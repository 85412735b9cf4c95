"""`txnctl subscriptions pending`: acknowledgements of open transactions."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import (
    argument,
    example,
    output,
    reads_store,
)
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
    "txnctl produce orders -m two",
)

PENDING = (
    Field("messageId", "id", "The entry, or for a cumulative one the last message.", heading="MESSAGE ID"),
    Field("kind", "text", "individual, or cumulative: everything up to here."),
    Field("messages", "integer", "Messages of the entry; null for a cumulative one."),
    Field("txnId", "id", "The open transaction.", heading="TXN"),
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@reads_store
@output(PENDING, name_field="messageId")
@example("txnctl subscriptions pending orders billing", setup=_SETUP)
def pending(context: Context, topic: str, subscription: str) -> None:
    """List the acknowledgements that wait for their transaction.

    No consumer gets these messages until the transaction ends: a commit acknowledges, an abort redelivers.
    """
    rows = to_json(context.store.reports.list_pending_acknowledgements(topic, subscription))
    if not rows and context.output == "table":
        context.note(f"nothing is pending on {subscription} of {topic}")
    context.show_list(rows)
