"""`txnctl subscriptions clear-backlog`: acknowledge all visible and delayed messages unread."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, asks, changes_store, example, option, output
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.commands.subscriptions.cursor_move import SKIPPED, asked, skipped_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from txnctl.cli.context import Context
    from txnctl.commands.subscriptions.cursor_move import Skipped

_SETUP = (
    "txnctl topics create orders",
    "txnctl subscriptions create orders billing --from earliest",
    "txnctl produce orders -m one",
)


@argument("topic", type=TOPIC, help="The topic.")
@argument("subscription", type=SUBSCRIPTION, help="The subscription.")
@option("--beyond-max-read", is_flag=True, help="At READ_UNCOMMITTED, do not stop at maxReadPosition.")
@changes_store(effect="destroys")
@administrative
@asks
@output(SKIPPED, name_field="subscription")
@example("txnctl subscriptions clear-backlog orders billing --yes", setup=_SETUP)
@example("txnctl subscriptions clear-backlog orders billing --dry-run -o json", setup=_SETUP)
def clear_backlog(context: Context, topic: str, subscription: str, beyond_max_read: bool) -> None:
    """Acknowledge all visible and delayed messages of a subscription, unread.

    Messages pending in a transaction are left alone, and so is everything behind
    maxReadPosition. The messages stay in the topic: `subscriptions seek` goes back.
    """

    def change(*, dry_run: bool) -> Skipped:
        return context.store.admin.subscriptions.clear_backlog(
            topic, subscription, beyond_max_read=beyond_max_read, dry_run=dry_run, reason=context.reason
        )

    question = f"Clear the backlog of {subscription} on {topic}?"
    context.show(asked(context, change, question), table=lambda row: skipped_lines(context, row))
