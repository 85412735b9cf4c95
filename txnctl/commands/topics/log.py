"""`txnctl topics log`: the stored entries of a topic."""

from __future__ import annotations

from storage.errors import InvalidValue
from txnctl.cli.at_time import AtTime, position_of
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.newest import newest_entries
from txnctl.cli.value_types import RANGE, TOPIC
from txnctl.cli.whole_number import WholeNumber
from txnctl.commands.subscriptions.start_note import note_if_to_come
from txnctl.output.field import Help, fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage import MessageId, Position, Store
    from storage.reports.browse import EntryRow
    from storage.values.position import Extreme
    from txnctl.cli.context import Context
    from txnctl.cli.value_types import MessageRange

    Start = Position | MessageId | Extreme | AtTime

NEWEST_DEFAULT = 50

ENTRIES = fields_of(
    "storage.reports.browse:EntryRow",
    {
        "position": Help("ledger:entry."),
        "kind": Help("messages, or commit or abort: the marker of a transaction that ended."),
        "messages": Help("Messages in the entry."),
        "size": Help("Its bytes.", kind="size", rank=2),
        "txn_id": Help("The transaction it belongs to, or null.", heading="TXN"),
        "txn_state": Help("The state of that transaction now, or null.", kind="text", heading="STATE"),
        "producer_name": Help("Its producer; null for a marker.", kind="id", heading="PRODUCER", rank=1),
        "sequence_id": Help("Its first sequence id; null for a marker.", heading="SEQUENCE", rank=4),
        "epoch": Help("The topic epoch of its producer, or null.", heading=""),
        "publish_time_at_ms": Help("When it was stored.", heading="PUBLISHED", rank=3),
        "delivery_time_ms": Help(
            "The earliest delivery time of its messages, or null.", kind="timeMs", heading=""
        ),
    },
)


@argument("topic", type=TOPIC, help="The topic.")
@option(
    "--range",
    "message_range",
    type=RANGE,
    metavar="RANGE",
    help="Which entries: A..B, -N for the last N, or @TIME for all since then, as `--since 2h`; A and B are positions "
    "or @TIME. "
    f"[default: -{NEWEST_DEFAULT}]",
)
@option(
    "-n", "--count", type=WholeNumber(1), metavar="N", help="The last N entries; of --range, N at the most."
)
@option("--tail", "--last", type=WholeNumber(0), metavar="N", help="The last N entries, as `--range -N`.")
@option("-f", "--follow", is_flag=True, help="At the end wait for more entries.")
@reads_store
@output(ENTRIES, name_field="position")
@example(
    "txnctl topics log orders",
    setup=("txnctl topics create orders", "txnctl transactions run -- txnctl produce orders -m hello"),
)
@example("txnctl topics log orders --tail 5", setup="txnctl topics create orders")
@example("txnctl topics log orders --range 1:0.. -o ndjson", setup="txnctl topics create orders")
def log(
    context: Context,
    topic: str,
    message_range: MessageRange | None,
    count: int | None,
    tail: int | None,
    follow: bool,
) -> None:
    """Show the stored entries of a topic, transaction markers included.

    An entry is one message, a batch of messages sent together, or the marker of a transaction that has ended. Entries
    of open and aborted transactions are shown as well; STATE tells.
    """
    if tail is not None and message_range is not None:
        raise InvalidValue("--tail and --range exclude each other", hint="--tail 5 is --range -5.")
    if tail is not None and count is not None:
        raise InvalidValue("--tail and -n exclude each other", hint="--tail N shows the last N entries.")
    if message_range is not None and message_range.newest is None:
        note_if_to_come(context, context.store, topic, message_range.first)
    rows = _rows(context.store, topic, message_range, count if tail is None else tail)
    if follow:
        from txnctl.commands.topics.log_follow import follow_log

        if message_range is not None and message_range.newest is None:
            raise InvalidValue("--follow goes on from the end, and --range has one", hint="Use --tail N.")
        follow_log(context, topic, rows)
    else:
        context.show_list(rows)


def _rows(
    store: Store, topic: str, message_range: MessageRange | None, count: int | None
) -> Iterator[EntryRow]:
    """The entries of the range, at most so many; without a range the last ones."""
    from itertools import islice

    if message_range is None:
        newest = NEWEST_DEFAULT if count is None else count
        return store.reports.topic_log(topic, newest_entries(store, topic, newest))
    if message_range.newest is not None:
        start = newest_entries(store, topic, message_range.newest)
        return islice(store.reports.topic_log(topic, start), count)
    rows = _from(store, topic, message_range.first)
    _check_kept(store, topic, message_range.last)
    return islice(_until(rows, message_range.last), count)


def _check_kept(store: Store, topic: str, last: Start) -> None:
    """Check that a range does not end within what was trimmed: an empty list would say that nothing ever was there.

    Raises:
        MessageNotFound
    """
    from storage.values.position import MessageId, Position

    if isinstance(last, (Position, MessageId)):
        next(store.reports.topic_log(topic, Position(last.ledger_id, 0), limit=1), None)


def _from(store: Store, topic: str, first: Start) -> Iterator[EntryRow]:
    """All entries from there on."""
    return store.reports.topic_log(topic, position_of(store, topic, first))


def _until(rows: Iterator[EntryRow], last: Start) -> Iterator[EntryRow]:
    """The rows up to there."""
    from itertools import takewhile

    from storage.values.position import EARLIEST, Extreme, Position

    if isinstance(last, AtTime):
        return takewhile(lambda row: row.publish_time_at_ms <= last.time_ms, rows)
    if isinstance(last, Extreme):
        return iter(()) if last is EARLIEST else rows
    end = Position(last.ledger_id, last.entry_id)
    return takewhile(lambda row: row.position <= end, rows)
