"""`txnctl subscriptions create`: a subscription without consumers."""

from __future__ import annotations

from txnctl.cli.at_time import position_of
from txnctl.cli.decorators import argument, changes_store, example, option, output
from txnctl.cli.value_types import (
    ISOLATION_LEVEL,
    ON_OPEN as ON_OPEN_NAMES,
    POSITION_OR_TIME,
    SUBSCRIPTION,
    SUBSCRIPTION_TYPE,
    TOPIC,
)
from txnctl.cli.whole_number import WholeNumber
from txnctl.fields.subscription import MODE, NAMES, ON_OPEN, mode_of, name_of
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import IsolationLevel, OnOpen, SubscriptionType
    from storage.admin.subscriptions import SubscriptionCreated
    from storage.values.position import Start
    from txnctl.cli.at_time import AtTime
    from txnctl.cli.context import Context

CREATED = fields_of(
    "storage.admin.subscriptions:SubscriptionCreated",
    {**NAMES, **MODE, **ON_OPEN, "mark_delete_position": "Its backlog begins after this position."},
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The new subscription: letters, digits and -_.=:.")
@option("--subscription-type", type=SUBSCRIPTION_TYPE, help="Who shares the messages. [default: exclusive]")
@option("--isolation-level", type=ISOLATION_LEVEL, help="What it may be handed. [default: read-committed]")
@option("--on-open", type=ON_OPEN_NAMES, help="What open transactions do to read-committed. [default: block]")
@option(
    "--from",
    "start",
    type=POSITION_OR_TIME,
    help="The first message of its backlog: earliest, latest, L:E, L:E:B or @TIME. [default: latest]",
)
@option("--dead-letter-topic", type=TOPIC, help="Where letters go. [default: TOPIC-SUBSCRIPTION-DLQ]")
@option(
    "--max-redeliver-count",
    type=WholeNumber(0),
    metavar="N",
    help="Move a message to the dead-letter topic after so many redeliveries. [default: never]",
)
@option(
    "--read-compacted",
    is_flag=True,
    help="Begin with messages that only the compacted view has, before the log.",
)
@changes_store()
@output(CREATED, name_field="subscription")
@example("txnctl subscriptions create orders billing", setup="txnctl topics create orders")
@example(
    "txnctl subscriptions create orders audit --isolation-level read-uncommitted --from earliest",
    setup="txnctl topics create orders",
)
@example(
    "txnctl subscriptions create orders shipping --subscription-type key-shared --on-open skip",
    setup="txnctl topics create orders",
)
def create(
    context: Context,
    topic: str,
    subscription: str,
    subscription_type: SubscriptionType | None,
    isolation_level: IsolationLevel | None,
    on_open: OnOpen | None,
    start: Start | AtTime | None,
    dead_letter_topic: str | None,
    max_redeliver_count: int | None,
    read_compacted: bool,
) -> None:
    """Create a subscription without consumers.

    READ_COMMITTED delivers committed messages in order and stops at the first open transaction. READ_UNCOMMITTED
    delivers every message at once: open, committed and aborted messages. `latest` misses no message committed later:
    at READ_COMMITTED the cursor starts just after maxReadPosition.

    With --on-open skip, for shared and key-shared, READ_COMMITTED passes open transactions: an open transaction holds
    back only its messages and, on key-shared, later messages with the same keys. A committed transaction may then
    arrive in parts, and the order of a producer is not kept.
    """
    from storage import LATEST, IsolationLevel, SubscriptionType
    from txnctl.commands.subscriptions.start_note import note_if_beyond

    start = LATEST if start is None else position_of(context.store, topic, start)
    row = context.store.admin.subscriptions.create_subscription(
        topic,
        subscription,
        subscription_type=subscription_type or SubscriptionType.EXCLUSIVE,
        subscription_isolation_level=isolation_level or IsolationLevel.READ_COMMITTED,
        on_open=on_open,
        initial_position=start,
        dead_letter_topic=dead_letter_topic,
        max_redeliver_count=max_redeliver_count,
        read_compacted=read_compacted,
    )
    note_if_beyond(context, topic, start, row.mark_delete_position)
    context.show(row, table=_created)


def _created(row: SubscriptionCreated) -> str:
    after = row.mark_delete_position
    return f"Created subscription {name_of(row)} ({mode_of(row)}); its backlog begins after {after}."
