"""`txnctl subscriptions pending`: acknowledgements of open transactions."""

from __future__ import annotations

from txnctl.cli.decorators import (
    argument,
    example,
    output,
    reads_store,
)
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
    "txnctl produce orders -m two",
)

PENDING = fields_of(
    "storage.reports.pending_acks:PendingRow",
    {
        "message_id": Help(
            "The entry, or the message of a batch; for a cumulative one the last message.",
            kind="id",
            heading="MESSAGE ID",
        ),
        "kind": "individual, or cumulative: everything up to here.",
        "messages": "Messages acknowledged; null for a cumulative one.",
        "txn_id": Help("The open transaction.", heading="TXN"),
    },
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
    rows = context.store.reports.list_pending_acknowledgements(topic, subscription)
    if not rows and context.output == "table":
        context.note(f"nothing is pending on {subscription} of {topic}")
    context.show_list(rows)
