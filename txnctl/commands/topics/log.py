"""`txnctl topics log`: the stored entries of a topic."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.at_time import AtTime, position_of
from txnctl.cli.decorators import argument, example, option, output, reads_store
from txnctl.cli.value_types import RANGE, TOPIC
from txnctl.output.field import Field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage import MessageId, Position, Store
    from storage.values.position import Extreme
    from txnctl.cli.context import Context
    from txnctl.cli.value_types import MessageRange
    from txnctl.output.row import Row

    Start = Position | MessageId | Extreme | AtTime

NEWEST_DEFAULT = 50

ENTRIES = (
    Field("position", "position", "ledger:entry."),
    Field("kind", "text", "messages, or commit or abort: the marker of a transaction that ended."),
    Field("messages", "integer", "Messages in the entry."),
    Field("size", "size", "Its bytes."),
    Field("txnId", "id", "The transaction it belongs to, or null.", heading="TXN"),
    Field("txnState", "text", "The state of that transaction now, or null.", heading="STATE"),
    Field("producerName", "text", "Its producer; null for a marker.", heading="PRODUCER"),
    Field("sequenceId", "integer", "Its first sequence id; null for a marker.", heading="SEQUENCE"),
    Field("epoch", "integer", "The topic epoch of its producer, or null.", heading=""),
    Field("publishTimeAt", "time", "When it was stored.", heading="PUBLISHED"),
    Field("publishTimeMs", "timeMs", "The same as an integer.", heading=""),
)


@argument("topic", type=TOPIC, help="The topic.")
@option(
    "--range",
    "message_range",
    type=RANGE,
    metavar="RANGE",
    help="Which entries: A..B, -N for the last N, or @TIME for all since then; A and B are positions or @TIME. "
    f"[default: -{NEWEST_DEFAULT}]",
)
@reads_store
@output(ENTRIES, name_field="position")
@example(
    "txnctl topics log orders",
    setup=("txnctl topics create orders", "txnctl transactions run -- txnctl produce orders -m hello"),
)
@example("txnctl topics log orders --range 1:0.. -o ndjson", setup="txnctl topics create orders")
def log(context: Context, topic: str, message_range: MessageRange | None) -> None:
    """Show the stored entries of a topic, transaction markers included.

    An entry is one message, a batch of messages sent together, or the marker of a transaction that has ended. Entries
    of open and aborted transactions are shown as well; STATE tells.
    """
    context.show_list(_rows(context.store, topic, message_range))


def _rows(store: Store, topic: str, message_range: MessageRange | None) -> Iterator[Row]:
    newest = NEWEST_DEFAULT if message_range is None else message_range.newest
    if newest is not None:
        return to_json(store.reports.topic_log(topic, _newest(store, topic, newest)))
    assert message_range is not None
    return _until(_from(store, topic, message_range.first), message_range.last)


def _newest(store: Store, topic: str, count: int) -> Position | Extreme:
    """Where the last `count` entries begin: positions are dense within a ledger."""
    from storage.values.position import EARLIEST, Position

    for ledger in reversed(to_json(store.reports.topic_stats_internal(topic))["ledgers"]):
        if ledger["entries"] >= count:
            return Position(ledger["ledgerId"], ledger["entries"] - count)
        count -= ledger["entries"]
    return EARLIEST


def _from(store: Store, topic: str, first: Start) -> Iterator[Row]:
    """All entries from there on."""
    return to_json(store.reports.topic_log(topic, position_of(store, topic, first)))


def _until(rows: Iterator[Row], last: Start) -> Iterator[Row]:
    """The rows up to there."""
    from itertools import takewhile

    from storage.values.position import EARLIEST, Extreme, Position

    if isinstance(last, AtTime):
        return takewhile(lambda row: row["publishTimeMs"] <= last.time_ms, rows)
    if isinstance(last, Extreme):
        return iter(()) if last is EARLIEST else rows
    end = Position(last.ledger_id, last.entry_id)
    return takewhile(lambda row: Position.parse(row["position"]) <= end, rows)
