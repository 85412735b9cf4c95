"""`txnctl subscriptions create`: a subscription without consumers."""

from __future__ import annotations

from typing import NamedTuple

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
from txnctl.commands.if_not_exists import CREATED_NOW, check_same, create_unless_there, if_not_exists
from txnctl.fields.subscription import MODE, NAMES, ON_OPEN, mode_of, name_of
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import IsolationLevel, OnOpen, SubscriptionType
    from storage.admin.subscriptions import SubscriptionCreated
    from storage.json_form import Flat
    from storage.reports.stats import SubscriptionRow
    from storage.values.position import Start
    from txnctl.cli.at_time import AtTime
    from txnctl.cli.context import Context


class CreatedSubscription(NamedTuple):
    """The subscription, and whether it was created now."""

    subscription: Flat[SubscriptionCreated]
    created: bool


CREATED = fields_of(
    CreatedSubscription,
    {
        **NAMES,
        **MODE,
        **ON_OPEN,
        "mark_delete_position": "Its backlog begins after this position.",
        **CREATED_NOW,
    },
    part="storage.admin.subscriptions:SubscriptionCreated",
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The new subscription: letters, digits and -_.=:.")
@option("--subscription-type", type=SUBSCRIPTION_TYPE, help="Who shares the messages. [default: Exclusive]")
@option("--isolation-level", type=ISOLATION_LEVEL, help="What it may be handed. [default: READ_COMMITTED]")
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
@if_not_exists
@changes_store()
@output(CREATED, name_field="subscription")
@example("txnctl subscriptions create orders billing", setup="txnctl topics create orders")
@example(
    "txnctl subscriptions create orders audit --isolation-level READ_UNCOMMITTED --from earliest",
    setup="txnctl topics create orders",
)
@example(
    "txnctl subscriptions create orders shipping --subscription-type Key_Shared --on-open skip",
    setup="txnctl topics create orders",
)
@example(
    "txnctl subscriptions create orders billing --if-not-exists",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
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
    may_exist: bool,
) -> None:
    """Create a subscription without consumers.

    READ_COMMITTED delivers committed messages in order and stops at the first open transaction. READ_UNCOMMITTED
    delivers every message at once: open, committed and aborted messages. `latest` misses no message committed later:
    at READ_COMMITTED the cursor starts just after maxReadPosition.

    With --on-open skip, for shared and key-shared, READ_COMMITTED passes open transactions: an open transaction holds
    back only its messages and, on key-shared, later messages with the same keys. A committed transaction may then
    arrive in parts, and the order of a producer is not kept.

    --if-not-exists compares type, level, --on-open and the dead-letter rule where they are given; where the cursor of
    an existing subscription is does not matter.
    """
    from storage import LATEST, IsolationLevel, SubscriptionType
    from txnctl.commands.subscriptions.start_note import note_if_beyond

    start = LATEST if start is None else position_of(context.store, topic, start)

    def create_it() -> None:
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
        context.show(CreatedSubscription(row, created=True), table=_created)

    if not create_unless_there(may_exist, create_it):
        existing = context.store.reports.subscription_stats(topic, subscription).row
        check_same(
            f"subscription {name_of(existing)}",
            ("--subscription-type", subscription_type and subscription_type.value, existing.stats.type),
            (
                "--isolation-level",
                isolation_level and isolation_level.value,
                existing.stats.subscription_isolation_level,
            ),
            ("--on-open", on_open and on_open.value, existing.stats.on_open),
            (
                "--dead-letter-topic",
                _short_name(dead_letter_topic),
                _short_name(existing.stats.dead_letter_topic),
            ),
            ("--max-redeliver-count", max_redeliver_count, existing.stats.max_redeliver_count),
        )
        context.show(CreatedSubscription(_existing(existing), created=False), table=_created)


def _short_name(topic: str | None) -> str | None:
    from storage.values.names import full_topic_name, short_topic_name

    return None if topic is None else short_topic_name(full_topic_name(topic))


def _existing(row: SubscriptionRow) -> SubscriptionCreated:
    from storage.admin.subscriptions import SubscriptionCreated

    stats = row.stats
    return SubscriptionCreated(
        row.topic, row.subscription, stats.type, stats.subscription_isolation_level, stats.on_open,
        stats.mark_delete_position,
    )  # fmt: skip


def _created(row: CreatedSubscription) -> str:
    one = row.subscription
    text, after = f"subscription {name_of(one)} ({mode_of(one)})", one.mark_delete_position
    if row.created:
        return f"Created {text}; its backlog begins after {after}."
    return f"{text[0].upper()}{text[1:]} exists already; its markDeletePosition is {after}."
