"""`txnctl subscriptions show` and `stats`: one subscription, as it is and in numbers."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.fields.subscription import STATS, mode_of, name_of
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from txnctl.cli.context import Context

    Row = dict[str, Any]

_CONSUMERS = (
    Field("consumerName", "id", "The consumer.", heading="CONSUMER"),
    Field("owner", "text", "Who."),
    Field("program", "text", "What."),
    Field("alive", "text", "Alive."),
    Field("connectedSinceAt", "time", "Since when.", heading="CONNECTED SINCE"),
)

# Not required by the parser: who forgot it is told what the topic has, which only the store knows.
_SUBSCRIPTION = argument(
    "subscription", type=SUBSCRIPTION, required=False, metavar="SUBSCRIPTION", help="The subscription."
)

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")


@argument("topic", type=TOPIC, help="The topic.")
@_SUBSCRIPTION
@reads_store
@output(STATS, name_field="subscription")
@example("txnctl subscriptions show orders billing", setup=_SETUP)
def show(context: Context, topic: str, subscription: str | None) -> None:
    """Show what a subscription is: type, isolation level, cursor, consumers."""
    context.show(_row(context, topic, subscription), table=lambda row: _description(context, row))


@argument("topic", type=TOPIC, help="The topic.")
@_SUBSCRIPTION
@reads_store
@output(STATS, name_field="subscription")
@example("txnctl subscriptions stats orders billing", setup=_SETUP)
@example("txnctl subscriptions stats orders billing -o json", setup=_SETUP)
def stats(context: Context, topic: str, subscription: str | None) -> None:
    """Show the backlog of a subscription, split, and what it has delivered.

    The backlog is split into what its consumers may be handed now (visible: if it grows, they are slow), what is
    committed but waits behind an open transaction (blocked: no consumer can help), and what is not committed yet.
    """
    context.show(_row(context, topic, subscription), table=lambda row: _numbers(context, row))


def _row(context: Context, topic: str, subscription: str | None) -> Row:
    """All of the subscription.

    Raises:
        TopicNotFound, SubscriptionNotFound, click.UsageError: none was named; it says which ones the topic has.
    """
    if subscription is not None:
        return context.store.reports.subscription_stats(topic, subscription)
    names = [str(row["subscription"]) for row in context.store.reports.list_subscriptions(topic)]
    import click

    from storage.reports.finding import some

    there = some(names) or "no subscription"
    raise click.UsageError(
        f"missing argument 'SUBSCRIPTION': {topic} has {there}", click.get_current_context()
    )


def _description(context: Context, row: Row) -> Iterator[str]:
    from txnctl.commands.topics.stats import heading

    yield heading(context, name_of(row), mode_of(row), row["asOfMs"])
    yield f"  created      {row['createdAt']}"
    yield f"  cursor       {_cursor(row)}"
    yield f"  topic        {_ends(row)}"
    yield f"  on open      {row['onOpen']}"
    yield f"  dead letter  {_dead_letter(row)}"
    yield from _attached(context, row)


def _cursor(row: Row) -> str:
    return f"markDeletePosition {row['markDeletePosition']}   readPosition {row['readPosition']}"


def _ends(row: Row) -> str:
    return f"maxReadPosition {row['maxReadPosition']}   lastConfirmedEntry {row['lastConfirmedEntry']}"


def _dead_letter(row: Row) -> str:
    from txnctl.output.human import plural

    if row["maxRedeliverCount"] is None:
        return "never"
    topic = row["deadLetterTopic"] or f"{name_of(row).partition(' on ')[2]}-{row['subscription']}-DLQ"
    return f"after {plural(row['maxRedeliverCount'], 'redelivery', 'redeliveries')}, to {topic}"


def _attached(context: Context, row: Row) -> Iterator[str]:
    yield ""
    if not row["consumers"]:
        yield "  Nobody is attached."
        return
    rows = []
    for each in row["consumers"]:
        owner, _, program = str(each["owner"]).partition(" (")
        alive = {"alive": "yes", "dead": "DEAD", "rebooted": "DEAD"}.get(each["state"], each["state"])
        rows.append({**each, "owner": owner, "program": program.removesuffix(")"), "alive": alive})
    yield from [f"  {line}" for line in context.table_of(rows, _CONSUMERS, indent=2).splitlines()]


def _holders(row: Row) -> Iterator[str]:
    """What each open transaction holds back, where each holds back its own."""
    from txnctl.output.human import plural

    for each in row["heldBy"]:
        behind = f", {plural(each['blocked'], 'committed message')} behind" if each["blocked"] else ""
        yield f"    held by      {each['txnId']}: {plural(each['uncommitted'], 'uncommitted message')}{behind}"


def _numbers(context: Context, row: Row) -> Iterator[str]:
    from txnctl.commands.subscriptions.lag import explanation
    from txnctl.commands.topics.stats import VERDICT_STYLES, heading
    from txnctl.output.human import count, plural, size

    verdict = context.style(row["verdict"], *VERDICT_STYLES.get(row["verdict"], ()))
    yield heading(context, name_of(row), mode_of(row), row["asOfMs"])
    yield f"  verdict      {verdict}"
    yield f"  backlog      {plural(row['msgBacklog'], 'message')}, {size(row['backlogSize'])} stored"
    yield f"    visible      {count(row['visible']):>9}   of these {count(row['unackedMessages'])} in flight"
    why = "waiting for their key" if row["onOpen"] == "skip" else "behind an open transaction"
    yield f"    blocked      {count(row['blocked']):>9}   committed, {why}"
    yield f"    uncommitted  {count(row['uncommitted']):>9}   of open transactions"
    yield from _holders(row)
    yield f"  pending      {count(row['pending'])} acknowledged in open transactions"
    yield (
        f"  passed over  {count(row['acknowledgedAhead'])} acknowledged and {count(row['abortedAhead'])} aborted "
        "beyond markDeletePosition"
    )
    again = plural(row["msgRedeliverCounter"], "redelivery", "redeliveries")
    yield f"  delivered    {count(row['msgOutCounter'])}, of these {again}"
    yield f"  cursor       {_cursor(row)}"
    yield f"  topic        {_ends(row)}"
    yield from _attached(context, row)
    told = list(explanation(context, [row], row["blockedBy"], row["asOfMs"]))
    if told:
        yield ""
        yield from told
