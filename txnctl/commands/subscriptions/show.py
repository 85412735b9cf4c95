"""`txnctl subscriptions show`: type, isolation level, cursor and consumers of one subscription."""

from __future__ import annotations

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.commands.subscriptions.one_subscription import (
    SUBSCRIPTION_ARGUMENT,
    consumer_lines,
    cursor_line,
    ends_line,
    subscription_row,
)
from txnctl.fields.subscription import STATS, mode_of, name_of
from txnctl.output.human import plural
from txnctl.output.screen import heading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

_SETUP = ("txnctl topics create orders", "txnctl subscriptions create orders billing")


@argument("topic", type=TOPIC, help="The topic.")
@SUBSCRIPTION_ARGUMENT
@reads_store
@output(STATS, name_field="subscription")
@example("txnctl subscriptions show orders billing", setup=_SETUP)
def show(context: Context, topic: str, subscription: str | None) -> None:
    """Show the facts about one subscription: type, isolation level, cursor, consumers."""
    context.show(subscription_row(context, topic, subscription), table=lambda row: _description(context, row))


def _description(context: Context, row: Row) -> Iterator[str]:
    yield heading(context, name_of(row), mode_of(row), row["asOfMs"])
    yield f"  created      {row['createdAt']}"
    yield f"  cursor       {cursor_line(row)}"
    yield f"  topic        {ends_line(row)}"
    yield f"  on open      {row['onOpen']}"
    yield f"  dead letter  {_dead_letter(row)}"
    yield from consumer_lines(context, row)


def _dead_letter(row: Row) -> str:
    if row["maxRedeliverCount"] is None:
        return "never"
    topic = row["deadLetterTopic"] or f"{name_of(row).partition(' on ')[2]}-{row['subscription']}-DLQ"
    return f"after {plural(row['maxRedeliverCount'], 'redelivery', 'redeliveries')}, to {topic}"
