"""`txnctl topics stats-internal`: how a topic is stored."""

from __future__ import annotations

from storage.json_form import to_json
from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.topic import AS_OF, NAMES
from txnctl.output.field import Field
from txnctl.output.human import plural, size
from txnctl.output.screen import heading, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from txnctl.cli.context import Context
    from txnctl.output.row import Row

INTERNAL = (
    *NAMES,
    Field("topicId", "integer", "Its number in this store; a topic created again has another."),
    *AS_OF,
    Field("entriesAddedCounter", "integer", "Entries ever appended, markers included."),
    Field("numberOfEntries", "integer", "Entries stored."),
    Field("totalSize", "size", "Bytes stored."),
    Field("currentLedgerEntries", "integer", "Entries of the open ledger."),
    Field("currentLedgerSize", "size", "Bytes of the open ledger."),
    Field("lastConfirmedEntry", "position", "The last entry written, markers included."),
    Field("maxReadPosition", "position", "How far READ_COMMITTED reads."),
    Field(
        "ledgers",
        "list",
        "In order: ledgerId, entries, messages, size, openedAt, openedMs, closedAt, closedMs (null: open).",
    ),
    Field(
        "cursors",
        "map",
        "By subscription: markDeletePosition, readPosition, individuallyDeletedMessages, generation, "
        "releasedEntries, pendingCumulative.",
    ),
    Field("openTransactions", "list", "In order of their first message here: txnId, firstPosition."),
    Field(
        "abortedSegments",
        "list",
        "The aborted set: segment, firstPosition, lastPosition, transactions, messages, bytes.",
    ),
)

LEDGERS = (
    Field("ledgerId", "id", "The ledger.", heading="LEDGER"),
    Field("entries", "integer", "Its entries."),
    Field("messages", "integer", "Its messages."),
    Field("size", "size", "Its bytes."),
    Field("openedAt", "time", "When it was opened.", heading="OPENED"),
    Field("closedAt", "time", "When it was closed for good.", heading="CLOSED"),
)

CURSORS = (
    Field("name", "id", "The subscription.", heading="CURSOR"),
    Field("markDeletePosition", "position", "Everything up to here is acknowledged.", heading="MARK-DELETE"),
    Field("readPosition", "position", "Dispatch has come so far.", heading="READ"),
    Field(
        "pendingCumulative",
        "id",
        "Whose cumulative acknowledgement is pending.",
        heading="PENDING CUMULATIVE",
    ),
    Field("ahead", "text", "What is acknowledged ahead of mark-delete.", heading="ACKNOWLEDGED AHEAD"),
)

OPEN = (
    Field("txnId", "id", "The transaction.", heading="OPEN TRANSACTION"),
    Field("firstPosition", "position", "Its first message here.", heading="FIRST MESSAGE"),
)

SEGMENTS = (
    Field("segment", "id", "Its number.", heading="ABORTED SEGMENT"),
    Field("firstPosition", "position", "The first message of its transactions.", heading="FIRST"),
    Field("lastPosition", "position", "The last message of its transactions.", heading="LAST"),
    Field("transactions", "integer", "Aborted transactions in it."),
    Field("messages", "integer", "Their messages."),
    Field("bytes", "size", "What the segment takes.", heading="SIZE"),
)

AHEAD_SHOWN = 3
"""Ranges of a cursor that the table shows; JSON has them all."""


@reads_store
@argument("topic", type=TOPIC, help="The topic.")
@output(INTERNAL, name_field="name")
@example("txnctl topics stats-internal orders", setup="txnctl topics create orders")
def stats_internal(context: Context, topic: str) -> None:
    """Show the ledgers, cursors and aborted transactions of a topic.

    `topics stats` is the report for everyday use; this report shows the stored state behind the counts.
    """
    context.show(
        to_json(context.store.reports.topic_stats_internal(topic)), table=lambda row: _screen(context, row)
    )


def _screen(context: Context, row: Row) -> Iterator[str]:
    facts = f"{plural(row['numberOfEntries'], 'entry', 'entries')}, {size(row['totalSize'])}, topic {row['topicId']}"
    yield heading(context, row["name"], facts, row["asOfMs"])
    yield f"  positions   maxReadPosition {row['maxReadPosition']}   lastConfirmedEntry {row['lastConfirmedEntry']}"
    yield from _section(context, row["ledgers"], LEDGERS)
    cursors = [{**cursor, "name": name, "ahead": _ahead(cursor)} for name, cursor in row["cursors"].items()]
    yield from _section(context, cursors, CURSORS)
    yield from _section(context, row["openTransactions"], OPEN)
    yield from _section(context, row["abortedSegments"], SEGMENTS)


def _section(context: Context, rows: Sequence[Row], fields: Sequence[Field]) -> Iterator[str]:
    if not rows:
        return
    table = context.table_of(rows, fields, indent=2)
    yield ""
    yield from section(context, table)


def _ahead(cursor: Row) -> str | None:
    """The first few ranges, and how many more there are."""
    ranges = cursor["individuallyDeletedMessages"]
    if not ranges:
        return None
    more = len(ranges) - AHEAD_SHOWN
    return ", ".join(ranges[:AHEAD_SHOWN]) + (f", {more:,} more" if more > 0 else "")
