"""One subscription on a screen: the argument, the row, and the lines of `show` and `stats` alike."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument
from txnctl.cli.value_types import SUBSCRIPTION
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_CONSUMERS = (
    Field("consumerName", "id", "The consumer.", heading="CONSUMER"),
    Field("owner", "text", "Who."),
    Field("program", "text", "What."),
    Field("alive", "text", "Alive."),
    Field("connectedSinceAt", "time", "Since when.", heading="CONNECTED SINCE"),
)

# Optional for the parser: the error about a missing name lists the subscriptions, known to the store alone.
SUBSCRIPTION_ARGUMENT = argument(
    "subscription", type=SUBSCRIPTION, required=False, metavar="SUBSCRIPTION", help="The subscription."
)


def subscription_row(context: Context, topic: str, subscription: str | None) -> Row:
    """All of the subscription.

    Raises:
        TopicNotFound, SubscriptionNotFound, click.UsageError: no subscription was named; the message lists the
        subscriptions of the topic.
    """
    if subscription is not None:
        return to_json(context.store.reports.subscription_stats(topic, subscription))
    names = [str(row["subscription"]) for row in to_json(context.store.reports.list_subscriptions(topic))]
    import click

    from storage.reports.finding import some

    existing = some(names) or "no subscription"
    raise click.UsageError(
        f"missing argument 'SUBSCRIPTION': {topic} has {existing}", click.get_current_context()
    )


def cursor_line(row: Row) -> str:
    """Both positions of the cursor."""
    return f"markDeletePosition {row['markDeletePosition']}   readPosition {row['readPosition']}"


def ends_line(row: Row) -> str:
    """The last readable and the last written entry of the topic."""
    return f"maxReadPosition {row['maxReadPosition']}   lastConfirmedEntry {row['lastConfirmedEntry']}"


def consumer_lines(context: Context, row: Row) -> Iterator[str]:
    """A section with every attached consumer."""
    yield ""
    if not row["consumers"]:
        yield "  Nobody is attached."
        return
    rows = []
    for consumer in row["consumers"]:
        owner, _, program = str(consumer["owner"]).partition(" (")
        alive = {"alive": "yes", "dead": "DEAD", "rebooted": "DEAD"}.get(consumer["state"], consumer["state"])
        rows.append({**consumer, "owner": owner, "program": program.removesuffix(")"), "alive": alive})
    yield from [f"  {line}" for line in context.table_of(rows, _CONSUMERS, indent=2).splitlines()]
