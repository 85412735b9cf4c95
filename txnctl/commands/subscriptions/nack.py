"""`txnctl subscriptions nack`: negatively acknowledge messages, for redelivery after a delay."""

from __future__ import annotations

from txnctl.cli.decorators import (
    administrative,
    argument,
    changes_store,
    example,
    option,
    output,
)
from txnctl.cli.value_types import DURATION, SUBSCRIPTION, TOPIC
from txnctl.commands.subscriptions.message_id import MESSAGE_ID
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, name_of
from txnctl.output.field import fields_of
from txnctl.output.human import duration, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage.admin.acknowledgements import NegativelyAcknowledged
    from storage.values.position import MessageId
    from txnctl.cli.context import Context

_DELAY_S = 60.0

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
    "txnctl produce orders -m two",
)

GIVEN_BACK = fields_of(
    "storage.admin.acknowledgements:NegativelyAcknowledged",
    {
        **NAMES,
        "given_back": "Messages that will be handed out again.",
        "dry_run": DRY_RUN["dry_run"]._replace(heading=""),
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument(
    "message_ids",
    metavar="MESSAGE_ID...",
    type=MESSAGE_ID,
    nargs=-1,
    required=True,
    help="The messages; L:E of a batch means all of it.",
)
@option("--delay", type=DURATION, default=_DELAY_S, help="Hand them out again after this long. [default: 1m]")
@changes_store()
@administrative
@output(GIVEN_BACK, name_field="subscription")
@example("txnctl subscriptions nack orders billing 1:0 --dry-run", setup=_SETUP)
@example(
    "txnctl subscriptions nack orders billing 1:0 --delay 30s --reason 'the printer is out'", setup=_SETUP
)
def nack(
    context: Context, topic: str, subscription: str, message_ids: Sequence[MessageId], delay: float
) -> None:
    """Give messages back for redelivery after a delay.

    For messages that were delivered and are not acknowledged. Each redelivery raises the redelivery count; after the
    subscription's maximum a message goes to the dead-letter topic.
    """
    row = context.store.admin.acknowledgements.negative_acknowledge_messages(
        topic,
        subscription,
        list(message_ids),
        delay=delay,
        dry_run=context.dry_run,
        reason=context.reason,
    )
    context.show(row, table=lambda shown: _given_back(shown, delay))


def _given_back(row: NegativelyAcknowledged, delay: float) -> str:
    before = "DRY RUN: nothing was changed.\n\n" if row.dry_run and row.given_back else ""
    return before + _what_was_given_back(row, delay)


def _what_was_given_back(row: NegativelyAcknowledged, delay: float) -> str:
    if not row.given_back:
        return f"None of these messages is in flight on {name_of(row)}. Nothing was changed."
    again = f"to be handed out again in {duration(int(delay * 1000))}" if delay else "to be handed out again"
    verb = "Would give back" if row.dry_run else "Gave back"
    return f"{verb} {plural(row.given_back, 'message')} of {name_of(row)}, {again}."
