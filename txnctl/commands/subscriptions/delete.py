"""`txnctl subscriptions delete`: remove a subscription and the cursor."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import administrative, argument, changes_store, example, forcible, output
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.commands.subscriptions.aborted import TRANSACTIONS_ABORTED, aborted_lines
from txnctl.fields.change import DRY_RUN
from txnctl.fields.subscription import NAMES, mode_of, name_of
from txnctl.output.field import Field
from txnctl.output.human import plural
from txnctl.output.screen import dry_run_heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")
DELETED = (
    *NAMES,
    Field("consumersEvicted", "list", "Consumers that were attached."),
    TRANSACTIONS_ABORTED,
    DRY_RUN,
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@changes_store(effect="destroys")
@administrative
@forcible("Evict its consumers and abort the open transactions that have acknowledgements pending there.")
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
        plan = to_json(delete_subscription(topic, subscription, force=context.force, dry_run=True))
        backlog = to_json(context.store.reports.subscription_stats(topic, subscription))
        context.confirm(
            f"Delete subscription {subscription} on {topic}?", plan=[*_backlog(backlog), *aborted_lines(plan)]
        )
    deleted = delete_subscription(
        topic, subscription, force=context.force, dry_run=context.dry_run, reason=context.reason
    )
    context.show(to_json(deleted), table=lambda shown: _deleted(context, shown))


def _backlog(row: Row) -> Iterator[str]:
    yield (
        f"{name_of(row)} ({mode_of(row)}): markDeletePosition {row['markDeletePosition']}, "
        f"{plural(row['msgBacklog'], 'message')} not acknowledged"
    )


def _deleted(context: Context, row: Row) -> Iterator[str]:
    yield from dry_run_heading(context, row["dryRun"])
    yield f"{'Would delete' if row['dryRun'] else 'Deleted'} subscription {name_of(row)}."
    yield from aborted_lines(row)
