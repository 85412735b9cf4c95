"""`txnctl subscriptions update`: change the type, isolation level or dead-letter rule."""

from __future__ import annotations

import click

from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, option, output
from txnctl.cli.value_types import ISOLATION_LEVEL, ON_OPEN, SUBSCRIPTION, SUBSCRIPTION_TYPE, TOPIC
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.subscriptions.forced_ends import TRANSACTIONS_ABORTED, aborted_lines
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, mode_of, name_of, short_topic
from txnctl.output.field import fields_of
from txnctl.output.screen import dry_run_heading
from txnctl.output.shell import line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage import IsolationLevel, OnOpen, SubscriptionType
    from storage.admin.audited_change import Changed, OfSubscription
    from storage.admin.subscriptions import SubscriptionUpdated
    from txnctl.cli.context import Context

    Updated = Changed[OfSubscription[SubscriptionUpdated]]

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")
UPDATED = fields_of(
    "storage.admin.subscriptions:Changed[OfSubscription[SubscriptionUpdated]]",
    {
        **NAMES,
        "type": "Its type now.",
        "subscription_isolation_level": "Its isolation level now.",
        "on_open": "What open transactions do to it now: block, or skip.",
        "changes": "What changed, in words; empty if it was so already.",
        **TRANSACTIONS_ABORTED,
        **DRY_RUN,
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@option("--subscription-type", type=SUBSCRIPTION_TYPE, help="The new type.")
@option("--isolation-level", type=ISOLATION_LEVEL, help="The new isolation level.")
@option("--on-open", type=ON_OPEN, help="What open transactions do to read-committed from now on.")
@option("--dead-letter-topic", type=TOPIC, help="Where messages go that were redelivered too often.")
@option(
    "--max-redeliver-count",
    type=WholeNumber(0),
    metavar="N",
    help="Move a message there after so many redeliveries.",
)
@changes_store()
@administrative
@forcible("For a new type: abort the open transactions that have acknowledgements pending there.")
@output(UPDATED, name_field="subscription")
@example("txnctl subscriptions update orders billing --isolation-level READ_UNCOMMITTED", setup=_SETUP)
@example("txnctl subscriptions update orders billing --subscription-type Shared --on-open skip", setup=_SETUP)
@example(
    "txnctl subscriptions update orders billing --subscription-type Shared --max-redeliver-count 5",
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

    Type, level and --on-open can change only while no consumer is attached. A new level applies to later messages:
    messages skipped by READ_COMMITTED stay skipped, and messages acknowledged while uncommitted stay acknowledged. To
    see such messages again, seek.

    --on-open skip is for shared and key-shared at READ_COMMITTED, block for every type: messages held back until then
    arrive in the order of the log, none twice.
    """
    changes = (subscription_type, isolation_level, on_open, dead_letter_topic, max_redeliver_count)
    if all(change is None for change in changes):
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
    if any(change.startswith("subscriptionIsolationLevel") for change in row.effects.change.changes):
        _note_level(context, row.effects)


def _note_level(context: Context, row: OfSubscription[SubscriptionUpdated]) -> None:
    """Note that a new level leaves the past as it is."""
    kept = "messages acknowledged while they were uncommitted stay acknowledged"
    if row.change.subscription_isolation_level == "READ_UNCOMMITTED":
        kept = "messages of aborted transactions that were skipped stay skipped"
    seek = line("subscriptions seek", short_topic(row), row.subscription, "POSITION")
    context.note(f"{kept}; to see them again a seek is needed: {seek}")


def _updated(context: Context, row: Updated) -> Iterator[str]:
    yield from dry_run_heading(context, row.dry_run)
    names, updated = row.effects, row.effects.change
    if not updated.changes:
        yield f"{name_of(names)} is so already ({mode_of(updated)}). Nothing was changed."
        return
    verb = "Would change" if row.dry_run else "Changed"
    yield f"{verb} {name_of(names)}: {'; '.join(updated.changes)}."
    yield from aborted_lines(row.dry_run, updated.transactions_aborted)
