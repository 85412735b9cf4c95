"""One subscription on a screen: the argument, the row, and the lines of `show` and `stats` alike."""

from __future__ import annotations

from txnctl.cli.decorators import argument
from txnctl.cli.value_types import SUBSCRIPTION
from txnctl.fields.subscription import BLOCKER, ENDS, ROW
from txnctl.output.column import Column
from txnctl.output.field import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.stats import ConsumerRow, OneSubscription, SubscriptionStats
    from txnctl.cli.context import Context

STATS = fields_of("storage.reports.stats:OneSubscription", {**ROW, **ENDS, "blocked_by": f"{BLOCKER}."})
"""All that is known of a subscription."""

_ALIVE = {"alive": "yes", "dead": "DEAD", "rebooted": "DEAD"}

_CONSUMERS: tuple[Column[ConsumerRow], ...] = (
    Column("CONSUMER", "id", lambda consumer: consumer.consumer_name),
    Column("OWNER", "list", lambda consumer: consumer.owner.address),
    Column("PROGRAM", "text", lambda consumer: consumer.owner.program, rank=2),
    Column("ALIVE", "text", lambda consumer: _ALIVE.get(consumer.state, consumer.state)),
    Column("CONNECTED SINCE", "time", lambda consumer: consumer.connected_since_at_ms, rank=1),
)

# Optional for the parser: the error about a missing name lists the subscriptions, known to the store alone.
SUBSCRIPTION_ARGUMENT = argument(
    "subscription", type=SUBSCRIPTION, required=False, metavar="SUBSCRIPTION", help="The subscription."
)


def one_subscription(context: Context, topic: str, subscription: str | None) -> OneSubscription:
    """All of the subscription.

    Raises:
        TopicNotFound, SubscriptionNotFound, click.UsageError: no subscription was named; the message lists the
        subscriptions of the topic.
    """
    if subscription is not None:
        return context.store.reports.subscription_stats(topic, subscription)
    names = [row.subscription for row in context.store.reports.list_subscriptions(topic)]
    import click

    from storage.reports.finding import some
    from txnctl.cli.usage_hint import command_line
    from txnctl.output.shell import line

    at, existing = click.get_current_context(), some(names) or "no subscription"
    error = click.UsageError(f"missing argument 'SUBSCRIPTION': {topic} has {existing}", at)
    words = [topic, names[0]] if names else None
    shown = command_line(at, words) if words else line("subscriptions create", topic, "billing")
    error.hint = f"For example: {shown}"  # type: ignore[attr-defined]
    raise error


def cursor_line(stats: SubscriptionStats) -> str:
    """Both positions of the cursor."""
    return f"markDeletePosition {stats.mark_delete_position}   readPosition {stats.read_position}"


def ends_line(one: OneSubscription) -> str:
    """The last readable and the last written entry of the topic."""
    return f"maxReadPosition {one.max_read_position}   lastConfirmedEntry {one.last_confirmed_entry}"


def consumer_lines(context: Context, consumers: Sequence[ConsumerRow]) -> Iterator[str]:
    """A section with every attached consumer."""
    yield ""
    if not consumers:
        yield "  Nobody is attached."
        return
    yield from context.table_of(consumers, _CONSUMERS, indent=2).changed(str, indent=2)
