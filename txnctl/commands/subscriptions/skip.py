"""`txnctl subscriptions skip`: acknowledge the next messages unread."""

from __future__ import annotations

from txnctl.cli.decorators import administrative, argument, asks, changes_store, example, option, output
from txnctl.cli.value_types import SUBSCRIPTION, TOPIC
from txnctl.cli.whole_number import WholeNumber
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
@argument("count", type=WholeNumber(1), help="How many messages.")
@option("--beyond-max-read", is_flag=True, help="At READ_UNCOMMITTED, do not stop at maxReadPosition.")
@changes_store(effect="destroys")
@administrative
@asks
@output(SKIPPED, name_field="subscription")
@example("txnctl subscriptions skip orders billing 1 --yes --reason 'poison'", setup=_SETUP)
@example("txnctl subscriptions skip orders billing 1 --dry-run", setup=_SETUP)
def skip(context: Context, topic: str, subscription: str, count: int, beyond_max_read: bool) -> None:
    """Acknowledge the next messages of a subscription, unread.

    Visible and delayed messages count, in the order of the log; messages pending in a transaction are left alone.
    Skipping stops at maxReadPosition. The messages stay in the topic: `subscriptions seek` goes back.
    """

    def change(*, dry_run: bool) -> Skipped:
        return context.store.admin.subscriptions.skip_messages(
            topic,
            subscription,
            count,
            beyond_max_read=beyond_max_read,
            dry_run=dry_run,
            reason=context.reason,
        )

    question = f"Skip {count:,} messages of {subscription} on {topic}?"
    context.show(asked(context, change, question), table=lambda row: skipped_lines(context, row))
