"""`txnctl subscriptions show`: type, isolation level, cursor and consumers of one subscription."""

from __future__ import annotations

from storage.values.timestamps import rfc3339
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.commands.subscriptions.one_subscription import (
    STATS,
    SUBSCRIPTION_ARGUMENT,
    consumer_lines,
    cursor_line,
    ends_line,
    one_subscription,
)
from txnctl.fields.subscription import mode_of, name_of, short_topic
from txnctl.output.human import plural
from txnctl.output.screen import heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.reports.stats import OneSubscription, SubscriptionRow
    from txnctl.cli.context import Context

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")


@argument("topic", type=TOPIC, help="The topic.")
@SUBSCRIPTION_ARGUMENT
@reads_store
@output(STATS, name_field="subscription")
@example("txnctl subscriptions show orders billing", setup=_SETUP)
def show(context: Context, topic: str, subscription: str | None) -> None:
    """Show the facts about one subscription: type, isolation level, cursor, consumers."""
    context.show(one_subscription(context, topic, subscription), table=lambda row: _description(context, row))


def _description(context: Context, one: OneSubscription) -> Iterator[str]:
    stats = one.row.stats
    yield heading(context, name_of(one.row), mode_of(stats), one.row.as_of_at_ms)
    yield f"  created      {rfc3339(stats.created_at_ms)}"
    yield f"  cursor       {cursor_line(stats)}"
    yield f"  topic        {ends_line(one)}"
    yield f"  on open      {stats.on_open}"
    yield f"  dead letter  {_dead_letter(one.row)}"
    if stats.msg_lost_counter:
        yield f"  lost         {plural(stats.msg_lost_counter, 'message')} to hard retention"
    if stats.msg_expired_counter:
        yield f"  expired      {plural(stats.msg_expired_counter, 'message')} past the time to live"
    if stats.without_consumer_since_at_ms is not None:
        yield f"  no consumer  since {rfc3339(stats.without_consumer_since_at_ms)}"
    yield from consumer_lines(context, stats.consumers)


def _dead_letter(row: SubscriptionRow) -> str:
    count_max = row.stats.max_redeliver_count
    if count_max is None:
        return "never"
    topic = row.stats.dead_letter_topic or f"{short_topic(row)}-{row.subscription}-DLQ"
    return f"after {plural(count_max, 'redelivery', 'redeliveries')}, to {topic}"
