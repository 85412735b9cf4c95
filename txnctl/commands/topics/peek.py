"""`txnctl topics peek`: show messages without consuming."""

from __future__ import annotations

import click

from txnctl.cli.at_time import AtTime, position_of
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import ISOLATION_LEVEL, POSITION_OR_TIME, SUBSCRIPTION, TOPIC
from txnctl.commands.topics.isolation_level import own_level
from txnctl.output.field import Field
from txnctl.output.human import size
from txnctl.output.messages import MESSAGE_FIELDS, message_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage import IsolationLevel, Message, MessageId, Position
    from storage.values.position import Extreme
    from txnctl.cli.context import Context
    from txnctl.output.row import Row

    Start = Position | MessageId | Extreme | AtTime

PEEK_DEFAULT = 10
PEEK_MAX = 100_000

COLUMNS = (
    Field("messageId", "id", "The message."),
    Field("key", "text", "Its key."),
    Field("value", "text", "Its value, shortened."),
    Field("publishTimeAt", "time", "When it was stored.", heading="PUBLISHED"),
    Field("txnId", "id", "The transaction it was sent in.", heading="TXN"),
    Field("txnState", "text", "That transaction's state.", heading="STATE"),
)

CELL_MAX = 60
"""Characters of a key or value in a table."""


@argument("topic", type=TOPIC, help="The topic.")
@option("-s", "--subscription", type=SUBSCRIPTION, help="Begin where this subscription stands, at its level.")
@option(
    "--from",
    "start",
    type=POSITION_OR_TIME,
    help="Begin here, or at @TIME, where no subscription is named. [default: earliest]",
)
@option(
    "--isolation-level",
    type=ISOLATION_LEVEL,
    help="The level to read at, where no subscription is named. [default: read-committed]",
)
@option(
    "-n",
    "--count",
    type=click.IntRange(1, PEEK_MAX),
    default=PEEK_DEFAULT,
    metavar="N",
    help=f"Messages at the most. [default: {PEEK_DEFAULT}]",
)
@reads_store
@output(
    MESSAGE_FIELDS,
    name_field="messageId",
    formats=("table", "json", "ndjson", "name", "value"),
    default_piped="ndjson",
)
@example("txnctl topics peek orders", setup=("txnctl topics create orders", "txnctl produce orders -m hello"))
@example(
    "txnctl topics peek orders -s billing -n 1 -o value",
    setup=("txnctl topics create orders", "txnctl subscriptions create orders billing"),
)
def peek(
    context: Context,
    topic: str,
    subscription: str | None,
    start: Start | None,
    isolation_level: IsolationLevel | None,
    count: int,
) -> None:
    """Show messages without consuming them.

    With -s, the next unacknowledged messages that the subscription may deliver, messages in flight included. Nothing
    is delivered, counted or acknowledged.
    """
    if subscription is None:
        messages = _from_start(context, topic, start, isolation_level, count)
    else:
        has_place = start is not None or isolation_level is not None
        messages = _next_of_subscription(context, topic, subscription, count, has_place=has_place)
    if not messages and context.output == "table":
        context.note("nothing to see: no message is visible there")
    if context.output == "value":
        for message in messages:
            context.out.write_bytes((message.value or b"") + b"\n")
        return
    context.show_list(
        [message_row(message) for message in messages], table=lambda rows: _table(context, rows)
    )


def _next_of_subscription(
    context: Context, topic: str, subscription: str, count: int, *, has_place: bool
) -> list[Message]:
    """The next messages of a subscription.

    Raises:
        InvalidValue: --from or --isolation-level was given too.
    """
    if has_place:
        raise own_level()
    return context.store.reports.peek_messages(topic, subscription, count)


def _from_start(
    context: Context, topic: str, start: Start | None, isolation_level: IsolationLevel | None, count: int
) -> list[Message]:
    """The next messages of a reader."""
    from storage import EARLIEST, IsolationLevel

    begin = position_of(context.store, topic, start or EARLIEST)
    level = isolation_level or IsolationLevel.READ_COMMITTED
    with context.store.reader(topic, start=begin, isolation_level=level) as reader:
        return reader.read_batch(count)


def _table(context: Context, rows: Sequence[Row]) -> str:
    return context.table_of(
        [{**row, "key": _cell(row, "key"), "value": _cell(row, "value")} for row in rows], COLUMNS
    )


def _cell(row: Row, name: str) -> str | None:
    """Text unchanged, bytes that are not UTF-8 as Base64; a long value is cut, with the length behind."""
    text: str | None = row[name] if name in row else f"base64:{row[name + 'Base64']}"
    if text is None or len(text) <= CELL_MAX:
        return text
    return f"{text[:CELL_MAX]}... ({size(len(text))})"
