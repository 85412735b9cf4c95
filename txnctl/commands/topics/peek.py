"""`txnctl topics peek`: show messages without consuming."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.at_time import AtTime, position_of
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import ISOLATION_LEVEL, POSITION_OR_TIME, SUBSCRIPTION, TOPIC
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.subscriptions.start_note import note_if_to_come
from txnctl.commands.tables.key import key_of, with_base64
from txnctl.commands.topics.isolation_level import own_level
from txnctl.output.column import Column
from txnctl.output.escape import printable_bytes
from txnctl.output.human import plural, size
from txnctl.output.messages import MESSAGE_FIELDS, MessageRow, message_row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from storage import IsolationLevel, Message, MessageId, Position, Reader
    from storage.values.position import Extreme
    from txnctl.cli.context import Context

    Start = Position | MessageId | Extreme | AtTime

PEEK_DEFAULT = 10
PEEK_MAX = 100_000

_COLUMNS: tuple[Column[MessageRow], ...] = (
    Column("MESSAGE ID", "id", lambda row: row.message_id),
    Column("KEY", "text", lambda row: _cell(row.key)),
    Column("VALUE", "text", lambda row: _cell(row.value)),
    Column("PUBLISHED", "time", lambda row: row.publish_time_at_ms, rank=2),
    Column("TXN", "id", lambda row: row.txn_id),
    Column("STATE", "text", lambda row: row.txn_state, rank=1),
)

CELL_MAX = 60
"""Characters of a key or value in a table."""


@argument("topic", type=TOPIC, help="The topic.")
@option("-s", "--subscription", type=SUBSCRIPTION, help="Begin where this subscription stands, at its level.")
@option(
    "--from",
    "start",
    type=POSITION_OR_TIME,
    help="Begin here, or at @TIME, where no subscription is named; `--since 2h` is `--from @2h`. [default: earliest]",
)
@option(
    "--isolation-level",
    type=ISOLATION_LEVEL,
    help="The level to read at, where no subscription is named. [default: READ_COMMITTED]",
)
@option(
    "-n",
    "--count",
    type=WholeNumber(1, PEEK_MAX),
    metavar="N",
    help=f"Messages at the most. [default: {PEEK_DEFAULT}]",
)
@option("-k", "--key", metavar="KEY", help="Only messages with this key.")
@with_base64
@option("--tail", "--last", type=WholeNumber(0, PEEK_MAX), metavar="N", help="The last N visible messages.")
@reads_store
@output(
    MESSAGE_FIELDS,
    name_field="messageId",
    formats=("table", "wide", "json", "ndjson", "name", "value"),
    default_piped="ndjson",
)
@example("txnctl topics peek orders", setup=("txnctl topics create orders", "txnctl produce orders -m hello"))
@example(
    "txnctl topics peek orders --tail 1", setup=("txnctl topics create orders", "txnctl produce orders -m hi")
)
@example(
    "txnctl topics peek orders --key k7",
    setup=("txnctl topics create orders", "txnctl produce orders -k k7 -m stuck"),
)
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
    count: int | None,
    key: str | None,
    is_base64: bool,
    tail: int | None,
) -> None:
    """Show messages without consuming them.

    With -s, the next unacknowledged messages that the subscription may deliver, messages in flight and delayed ones
    included. Nothing is delivered, counted or acknowledged. Without -n a note says where there are more. With --key the
    next 100,000 messages (with -s, entries) are looked at, and a note says where the look ended.
    """
    most = count or PEEK_DEFAULT + 1
    key_bytes = None if key is None else key_of(key, is_base64=is_base64, name="--key")
    if is_base64 and key is None:
        raise InvalidValue("--key-base64 says how --key is written, and no --key is given")
    if tail is not None:
        _check_tail(subscription, start, count, key)
        messages, count = _tail(context, topic, isolation_level, tail), tail
    elif subscription is None:
        messages = _from_start(context, topic, start, isolation_level, most, key_bytes)
        if start is not None:
            note_if_to_come(context, context.store, topic, start)
    else:
        if start is not None or isolation_level is not None:
            raise own_level()
        messages = _next_of_subscription(context, topic, subscription, most, key_bytes)
    if count is None and len(messages) > PEEK_DEFAULT:
        messages = messages[:PEEK_DEFAULT]
        context.note(f"{plural(PEEK_DEFAULT, 'message')} shown, and there are more: -n N shows N")
    if not messages and context.output == "table":
        context.note("nothing to see: no message is visible there")
    if context.output == "value":
        context.out.write_values([message.value for message in messages])
        return
    context.show_list(
        [message_row(message) for message in messages], table=lambda rows: context.table_of(rows, _COLUMNS)
    )


def _check_tail(subscription: str | None, start: Start | None, count: int | None, key: str | None) -> None:
    """Refuse a further start, number or key beside --tail.

    Raises:
        InvalidValue
    """
    for name, value in (("-s", subscription), ("--from", start), ("-n", count), ("--key", key)):
        if value is not None:
            raise InvalidValue(
                f"--tail and {name} exclude each other", hint="--tail N shows the last N messages."
            )


def _tail(context: Context, topic: str, isolation_level: IsolationLevel | None, count: int) -> list[Message]:
    """The last messages that a reader sees."""
    from storage import IsolationLevel
    from txnctl.cli.newest import newest_messages

    level = isolation_level or IsolationLevel.READ_COMMITTED
    start = newest_messages(context.store, topic, level, count)
    return _from_start(context, topic, start, level, count) if count else []


def _next_of_subscription(
    context: Context, topic: str, subscription: str, count: int, key: bytes | None
) -> list[Message]:
    """The next messages of a subscription, of a key if one is given."""
    if key is None:
        return context.store.reports.peek_messages(topic, subscription, count)
    looked = context.store.reports.peek_key(topic, subscription, key, count)
    if looked.looked_through is not None:
        _note_end(context, looked.looked_through)
    return looked.messages


def _from_start(
    context: Context,
    topic: str,
    start: Start | None,
    isolation_level: IsolationLevel | None,
    count: int,
    key: bytes | None = None,
) -> list[Message]:
    """The next messages of a reader, of a key if one is given."""
    from storage import EARLIEST, IsolationLevel

    begin = position_of(context.store, topic, start or EARLIEST)
    level = isolation_level or IsolationLevel.READ_COMMITTED
    with context.store.reader(topic, start=begin, isolation_level=level) as reader:
        messages = reader.read_batch(count) if key is None else _of_key(context, reader, key, count)
        if len(messages) < count and context.output == "table":
            from txnctl.commands.consume.blocked_note import Hidden

            Hidden(context, topic, reader.blocked_by).at_end()
        return messages


def _of_key(context: Context, reader: Reader, key: bytes, count: int) -> list[Message]:
    """The next messages of a key, among the next `PEEK_MAX`."""
    messages: list[Message] = []
    last: Message | None = None
    for _ in range(PEEK_MAX):
        page = reader.read_batch(1)
        if not page or len(messages) >= count:
            return messages
        last = page[0]
        messages += [last] if last.key == key else []
    if last is not None and len(messages) < count and reader.has_message_available():
        _note_end(context, last.message_id)
    return messages


def _note_end(context: Context, at: Position | MessageId) -> None:
    context.note(f"looked through {at}, and there are more messages behind")


def _cell(data: bytes | None) -> str | None:
    r"""UTF-8 as text, further bytes as `\xff`, made harmless; a long value is cut, with the length behind."""
    if data is None:
        return None
    text = printable_bytes(data)
    return text if len(text) <= CELL_MAX else f"{text[:CELL_MAX]}... ({size(len(data))})"
