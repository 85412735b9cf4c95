"""`txnctl subscriptions delete`: remove a subscription and the cursor."""

from __future__ import annotations

from txnctl.cli.decorators import (
    administrative,
    argument,
    asks,
    changes_store,
    example,
    forcible,
    missing_ok,
    output,
)
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.commands.subscriptions.forced_ends import TRANSACTIONS_ABORTED, aborted_lines
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, mode_of, name_of
from txnctl.output.field import fields_of
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.admin.audited_change import Changed, OfSubscription
    from storage.admin.subscriptions import SubscriptionDeleted
    from storage.reports.stats import OneSubscription
    from txnctl.cli.context import Context

    Deleted = Changed[OfSubscription[SubscriptionDeleted]]

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")
DELETED = fields_of(
    "storage.admin.subscriptions:Changed[OfSubscription[SubscriptionDeleted]]",
    {**NAMES, "consumers_evicted": "Consumers that were attached.", **TRANSACTIONS_ABORTED, **DRY_RUN},
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@changes_store(effect="destroys")
@administrative
@asks
@forcible("Evict its consumers and abort the open transactions that have acknowledgements pending there.")
@missing_ok
@output(DELETED, name_field="subscription")
@example("txnctl subscriptions delete orders billing --dry-run", setup=_SETUP)
@example("txnctl subscriptions delete orders billing --yes", setup=_SETUP)
def delete(context: Context, topic: str, subscription: str) -> None:
    """Delete a subscription and the cursor.

    The topic and the messages stay; the acknowledgements of the subscription are gone. The command refuses while
    consumers are attached, and while an open transaction has acknowledgements pending on the subscription.
    """
    delete_subscription = context.store.admin.subscriptions.delete_subscription
    if not context.yes and not context.dry_run:
        plan = delete_subscription(topic, subscription, force=context.force, dry_run=True)
        backlog = _backlog(context.store.reports.subscription_stats(topic, subscription))
        context.confirm(f"Delete subscription {subscription} on {topic}?", plan=[backlog, *_ended(plan)])
    deleted = delete_subscription(
        topic, subscription, force=context.force, dry_run=context.dry_run, reason=context.reason
    )
    context.show(deleted, table=lambda shown: _deleted(context, shown))


def _backlog(one: OneSubscription) -> str:
    stats = one.row.stats
    return (
        f"{name_of(one.row)} ({mode_of(stats)}): markDeletePosition {stats.mark_delete_position}, "
        f"{plural(stats.msg_backlog, 'message')} not acknowledged"
    )


def _deleted(context: Context, row: Deleted) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    yield f"{'Would delete' if row.dry_run else 'Deleted'} subscription {name_of(row.effects)}."
    yield from _ended(row)


def _ended(row: Deleted) -> Iterator[str]:
    deleted = row.effects.change
    return aborted_lines(row.dry_run, deleted.transactions_aborted, deleted.consumers_evicted)
