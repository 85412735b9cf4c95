"""`txnctl subscriptions evict`, `update` and `delete`: changing what a subscription is, and who is on it."""

from __future__ import annotations

import click

from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, option, output
from txnctl.cli.value_types import ISOLATION_LEVEL, ON_OPEN, SUBSCRIPTION, SUBSCRIPTION_TYPE, TOPIC
from txnctl.fields.subscription import NAMES, mode_of, name_of, short_topic
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from storage import IsolationLevel, OnOpen, SubscriptionType
    from txnctl.cli.context import Context

    Row = dict[str, Any]

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")

_DRY_RUN = Field("dryRun", "boolean", "Whether nothing was changed.")
_ABORTED = Field(
    "transactionsAborted", "list", "Open transactions with acknowledgements pending, aborted first."
)

EVICTED = (
    *NAMES,
    Field("evicted", "list", "The consumers that were detached."),
    Field("messagesReleased", "integer", "Messages they held in flight, which others are handed now."),
    _DRY_RUN,
)
UPDATED = (
    *NAMES,
    Field("type", "text", "Its type now."),
    Field("subscriptionIsolationLevel", "text", "Its isolation level now."),
    Field("onOpen", "text", "What open transactions do to it now: block, or skip."),
    Field("changes", "list", "What changed, in words; empty if it was so already."),
    _ABORTED,
    _DRY_RUN,
)
DELETED = (
    *NAMES,
    Field("consumersEvicted", "list", "Consumers that were attached."),
    _ABORTED,
    _DRY_RUN,
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@argument("consumer", required=False, help="Only the consumer of this name. [default: all of them]")
@changes_store()
@administrative
@output(EVICTED, name_field="subscription")
@example("txnctl subscriptions evict orders billing --dry-run", setup=_SETUP)
@example("txnctl subscriptions evict orders billing --reason 'hangs since the deploy'", setup=_SETUP)
def evict(context: Context, topic: str, subscription: str, consumer: str | None) -> None:
    """Detach consumers; what they held goes to others.

    For one that is stopped or hangs: what it holds in flight is stuck with it. Messages it has received may be
    delivered a second time, to another; its own later acknowledgements are refused.
    """
    row = context.store.admin.subscriptions.evict_consumers(
        topic, subscription, consumer, dry_run=context.dry_run, reason=context.reason
    )
    context.show(row, table=lambda shown: _evicted(context, shown, f" {consumer}" if consumer else ""))


def _evicted(context: Context, row: Row, named: str) -> Iterator[str]:
    from txnctl.output.human import plural

    yield from _dry_run(context, row)
    if not row["evicted"]:
        yield f"Nobody is attached to {name_of(row)}."
        return
    verb = "Would evict" if row["dryRun"] else "Evicted"
    released = plural(row["messagesReleased"], "message")
    yield f"{verb} {', '.join(row['evicted'])} from {name_of(row)}; {released} in flight released."
    if row["dryRun"]:
        yield ""
        yield f'Run: txnctl subscriptions evict {short_topic(row)} {row["subscription"]}{named} --reason "..."'


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@option("--subscription-type", type=SUBSCRIPTION_TYPE, help="The new type.")
@option("--isolation-level", type=ISOLATION_LEVEL, help="The new isolation level.")
@option("--on-open", type=ON_OPEN, help="What open transactions do to read-committed from now on.")
@option("--dead-letter-topic", type=TOPIC, help="Where messages go that were redelivered too often.")
@option(
    "--max-redeliver-count",
    type=click.IntRange(0),
    metavar="N",
    help="Move a message there after so many redeliveries.",
)
@changes_store()
@administrative
@forcible("For a new type: abort the open transactions that have acknowledgements pending there.")
@output(UPDATED, name_field="subscription")
@example("txnctl subscriptions update orders billing --isolation-level read-uncommitted", setup=_SETUP)
@example("txnctl subscriptions update orders billing --subscription-type shared --on-open skip", setup=_SETUP)
@example(
    "txnctl subscriptions update orders billing --subscription-type shared --max-redeliver-count 5",
    setup=_SETUP,
)
def update(
    context: Context,
    topic: str,
    subscription: str,
    subscription_type: SubscriptionType | None,
    isolation_level: IsolationLevel | None,
    on_open: OnOpen | None,
    dead_letter_topic: str | None,
    max_redeliver_count: int | None,
) -> None:
    """Change the type, isolation level or dead-letter rule of a subscription.

    Type, level and --on-open, which is part of it, can change only while no consumer is attached. A new level looks
    forwards: what READ_COMMITTED skipped stays skipped, and what was acknowledged while uncommitted stays
    acknowledged. To see such messages again, seek.

    --on-open skip is for shared and key-shared at READ_COMMITTED, block for every one: what it holds back then comes
    in the order of the log, and nothing twice.
    """
    wanted = (subscription_type, isolation_level, on_open, dead_letter_topic, max_redeliver_count)
    if all(each is None for each in wanted):
        raise click.UsageError("nothing to change: give at least one option")
    row = context.store.admin.subscriptions.update_subscription(
        topic,
        subscription,
        subscription_type=subscription_type,
        subscription_isolation_level=isolation_level,
        on_open=on_open,
        dead_letter_topic=dead_letter_topic,
        max_redeliver_count=max_redeliver_count,
        force=context.force,
        dry_run=context.dry_run,
        reason=context.reason,
    )
    context.show(row, table=lambda shown: _updated(context, shown))
    if any(str(each).startswith("subscriptionIsolationLevel") for each in row["changes"]):
        _note_level(context, row)


def _note_level(context: Context, row: Row) -> None:
    """Say what a change of level does not do."""
    kept = "messages acknowledged while they were uncommitted stay acknowledged"
    if row["subscriptionIsolationLevel"] == "READ_UNCOMMITTED":
        kept = "messages of aborted transactions that were skipped stay skipped"
    seek = f"txnctl subscriptions seek {short_topic(row)} {row['subscription']} POSITION"
    context.note(f"{kept}; to see them again a seek is needed: {seek}")


def _updated(context: Context, row: Row) -> Iterator[str]:
    yield from _dry_run(context, row)
    if not row["changes"]:
        yield f"{name_of(row)} is so already ({mode_of(row)}). Nothing was changed."
        return
    verb = "Would change" if row["dryRun"] else "Changed"
    yield f"{verb} {name_of(row)}: {'; '.join(row['changes'])}."
    yield from _aborted(row)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@changes_store(effect="destroys")
@administrative
@forcible("Evict its consumers and abort the open transactions that have acknowledgements pending there.")
@output(DELETED, name_field="subscription")
@example("txnctl subscriptions delete orders billing --dry-run", setup=_SETUP)
@example("txnctl subscriptions delete orders billing --yes", setup=_SETUP)
def delete(context: Context, topic: str, subscription: str) -> None:
    """Delete a subscription with its cursor.

    The topic and its messages stay; what this subscription has acknowledged is forgotten. It is refused while
    consumers are attached, or while an open transaction has acknowledgements pending there.
    """
    delete_subscription = context.store.admin.subscriptions.delete_subscription
    if not context.yes and not context.dry_run:
        plan = delete_subscription(topic, subscription, force=context.force, dry_run=True)
        backlog = context.store.reports.subscription_stats(topic, subscription)
        context.confirm(
            f"Delete subscription {subscription} on {topic}?", plan=[*_backlog(backlog), *_aborted(plan)]
        )
    row = delete_subscription(
        topic, subscription, force=context.force, dry_run=context.dry_run, reason=context.reason
    )
    context.show(row, table=lambda shown: _deleted(context, shown))


def _backlog(row: Row) -> Iterator[str]:
    from txnctl.output.human import plural

    yield (
        f"{name_of(row)} ({mode_of(row)}): markDeletePosition {row['markDeletePosition']}, "
        f"{plural(row['msgBacklog'], 'message')} not acknowledged"
    )


def _deleted(context: Context, row: Row) -> Iterator[str]:
    yield from _dry_run(context, row)
    yield f"{'Would delete' if row['dryRun'] else 'Deleted'} subscription {name_of(row)}."
    yield from _aborted(row)


def _aborted(row: Row) -> Iterator[str]:
    """Who had to go first."""
    verb = "would be" if row["dryRun"] else "were"
    if row.get("consumersEvicted"):
        yield f"Consumers {verb} evicted: {', '.join(row['consumersEvicted'])}."
    if row["transactionsAborted"]:
        yield f"Transactions {verb} aborted: {', '.join(row['transactionsAborted'])}."


def _dry_run(context: Context, row: Row) -> Iterator[str]:
    if row["dryRun"]:
        yield context.style("DRY RUN: nothing was changed.", "bold")
        yield ""
