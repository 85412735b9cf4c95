"""`txnctl topics stats-internal`: how a topic is stored."""

from __future__ import annotations

from typing import TypeVar

from txnctl.cli.decorators import argument, example, output, reads_store
from txnctl.cli.value_types import TOPIC
from txnctl.fields.topic import AS_OF, NAMES
from txnctl.output.column import Column
from txnctl.output.field import Help, fields_of
from txnctl.output.human import plural, size
from txnctl.output.screen import heading, section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from storage.reports.stats_internal import CursorRow, InternalStats, LedgerRow, OpenTransaction
    from storage.txn.aborted import AbortedSegment
    from txnctl.cli.context import Context

    NamedCursor = tuple[str, CursorRow]
    """The name of a subscription, and the cursor."""

R = TypeVar("R")

INTERNAL = fields_of(
    "storage.reports.stats_internal:InternalStats",
    {
        **NAMES,
        "topic_id": Help("Its number in this store; a topic created again has another."),
        **AS_OF,
        "entries_added_counter": Help("Entries ever appended, markers included."),
        "number_of_entries": Help("Entries stored."),
        "total_size": Help("Bytes stored.", kind="size"),
        "current_ledger_entries": Help("Entries of the open ledger."),
        "current_ledger_size": Help("Bytes of the open ledger.", kind="size"),
        "last_confirmed_entry": Help("The last entry written, markers included."),
        "max_read_position": Help("How far READ_COMMITTED reads."),
        "ledgers": Help(
            "In order: ledgerId, entries, messages, size, openedAt, openedMs, closedAt, closedMs (null: open)."
        ),
        "cursors": Help(
            "By subscription: markDeletePosition, readPosition, individuallyDeletedMessages, generation, "
            "releasedEntries, pendingCumulative."
        ),
        "open_transactions": Help("In order of their first message here: txnId, firstPosition."),
        "aborted_segments": Help(
            "The aborted set: segment, firstPosition, lastPosition, transactions, messages, bytes."
        ),
    },
)

_LEDGERS: tuple[Column[LedgerRow], ...] = (
    Column("LEDGER", "id", lambda ledger: ledger.ledger_id),
    Column("ENTRIES", "integer", lambda ledger: ledger.entries),
    Column("MESSAGES", "integer", lambda ledger: ledger.messages),
    Column("SIZE", "size", lambda ledger: ledger.size),
    Column("OPENED", "time", lambda ledger: ledger.opened_at_ms, rank=2),
    Column("CLOSED", "time", lambda ledger: ledger.closed_at_ms, rank=1),
)
_CURSORS: tuple[Column[NamedCursor], ...] = (
    Column("CURSOR", "id", lambda named: named[0]),
    Column("MARK-DELETE", "position", lambda named: named[1].mark_delete_position),
    Column("READ", "position", lambda named: named[1].read_position),
    Column("PENDING CUMULATIVE", "id", lambda named: named[1].pending_cumulative, rank=1),
    Column("ACKNOWLEDGED AHEAD", "list", lambda named: _ahead(named[1])),
)
_OPEN: tuple[Column[OpenTransaction], ...] = (
    Column("OPEN TRANSACTION", "id", lambda txn: txn.txn_id),
    Column("FIRST MESSAGE", "position", lambda txn: txn.first_position),
)
_SEGMENTS: tuple[Column[AbortedSegment], ...] = (
    Column("ABORTED SEGMENT", "id", lambda segment: segment.segment),
    Column("FIRST", "position", lambda segment: segment.first_position),
    Column("LAST", "position", lambda segment: segment.last_position),
    Column("TRANSACTIONS", "integer", lambda segment: segment.transactions),
    Column("MESSAGES", "integer", lambda segment: segment.messages),
    Column("SIZE", "size", lambda segment: segment.bytes),
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
    internal = context.store.reports.topic_stats_internal(topic)
    context.show(internal, table=lambda row: _screen(context, row))


def _screen(context: Context, row: InternalStats) -> Iterator[str]:
    facts = (
        f"{plural(row.number_of_entries, 'entry', 'entries')}, {size(row.total_size)}, topic {row.topic_id}"
    )
    yield heading(context, row.name, facts, row.as_of_at_ms)
    yield f"  positions   maxReadPosition {row.max_read_position}   lastConfirmedEntry {row.last_confirmed_entry}"
    yield from _section(context, row.ledgers, _LEDGERS)
    yield from _section(context, list(row.cursors.items()), _CURSORS)
    yield from _section(context, row.open_transactions, _OPEN)
    yield from _section(context, row.aborted_segments, _SEGMENTS)


def _section(context: Context, rows: Sequence[R], columns: Sequence[Column[R]]) -> Iterator[str]:
    if not rows:
        return
    table = context.table_of(rows, columns, indent=2)
    yield ""
    yield from section(context, table)


def _ahead(cursor: CursorRow) -> str | None:
    """The first few ranges, and how many more there are."""
    ranges = cursor.individually_deleted_messages
    if not ranges:
        return None
    more = len(ranges) - AHEAD_SHOWN
    return ", ".join(ranges[:AHEAD_SHOWN]) + (f", {more:,} more" if more > 0 else "")
