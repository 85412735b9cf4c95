"""`txnctl topics last-message-id`: the id of the last visible message."""

from __future__ import annotations

from typing import NamedTuple

from txnctl.cli.at_time import AtTime
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import ISOLATION_LEVEL, SUBSCRIPTION, TOPIC
from txnctl.commands.topics.isolation_level import own_level
from txnctl.fields.topic import NAMES
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import IsolationLevel, MessageId, Position
    from storage.values.position import Extreme
    from txnctl.cli.context import Context

    Start = Position | MessageId | Extreme | AtTime


class LastMessage(NamedTuple):
    """The last message of a topic that is visible at a level."""

    topic: str
    name: str
    subscription: str | None
    isolation_level: str
    message_id: MessageId | None


LAST_MESSAGE_ID = fields_of(
    LastMessage,
    {
        **NAMES,
        "subscription": Help("The subscription asked for; null if none was.", kind="id"),
        "isolation_level": Help("The level asked for, or the subscription's."),
        "message_id": Help("The last message visible at that level; null if there is none.", kind="id"),
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@option("-s", "--subscription", type=SUBSCRIPTION, help="What this subscription may be handed, at its level.")
@option("--isolation-level", type=ISOLATION_LEVEL, help="The level. [default: READ_COMMITTED]")
@reads_store
@output(LAST_MESSAGE_ID, name_field="messageId")
@example(
    "txnctl topics last-message-id orders",
    setup=("txnctl topics create orders", "txnctl produce orders -m hello"),
)
def last_message_id(
    context: Context, topic: str, subscription: str | None, isolation_level: IsolationLevel | None
) -> None:
    """Print the id of the last message that is visible.

    At READ_COMMITTED that is the largest one at or below maxReadPosition that is not aborted: no later message is
    readable yet. Where nothing is visible, nothing is printed.

    With -s, the last message that the subscription may deliver now, acknowledged or not; with on-open skip that may
    lie behind an open transaction.
    """
    from storage import IsolationLevel
    from storage.values.names import full_topic_name, short_topic_name

    level = isolation_level or IsolationLevel.READ_COMMITTED
    if subscription is not None:
        if isolation_level is not None:
            raise own_level()
        stats = context.store.reports.subscription_stats(topic, subscription).row.stats
        level = IsolationLevel[stats.subscription_isolation_level]
    message_id = context.store.reports.last_message_id(topic, level, subscription=subscription)
    if message_id is None and context.output == "table":
        context.note(f"no message of {topic} is visible at {level.value}")
    full = full_topic_name(topic)
    context.show(
        LastMessage(full, short_topic_name(full), subscription, level.value, message_id),
        table=lambda row: str(row.message_id or ""),
    )
