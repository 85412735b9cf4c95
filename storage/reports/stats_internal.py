"""The internal statistics of a topic: ledgers, cursors, open transactions, segments of the aborted set."""

from __future__ import annotations

from storage.disk.connection import Connection
from storage.disk.view import ReadView
from storage.subscription import acked_ranges, catalogue as subscriptions, cursor as cursors
from storage.topic import catalogue as topics, log, state as topic_states
from storage.txn import aborted, uncommitted_entries
from storage.txn.aborted import AbortedSegment
from storage.values.named_tuple import NamedTuple
from storage.values.position import Position
from storage.values.txn_id import TxnID


class LedgerRow(NamedTuple):
    """A ledger: entries, bytes, and the times of opening and closing."""

    ledger_id: int
    entries: int
    messages: int
    size: int
    opened_at_ms: int
    closed_at_ms: int | None


class CursorRow(NamedTuple):
    """A cursor; `individually_deleted_messages` are ranges as text, `1:60..1:75` or `1:60 (part)` of a batch."""

    mark_delete_position: Position
    read_position: Position
    individually_deleted_messages: list[str]
    generation: int
    released_entries: int
    pending_cumulative: TxnID | None


class OpenTransaction(NamedTuple):
    """An open transaction with messages on the topic."""

    txn_id: TxnID
    first_position: Position


class InternalStats(NamedTuple):
    """The internal statistics of a topic."""

    topic: str
    name: str
    topic_id: int
    as_of_at_ms: int
    entries_added_counter: int
    number_of_entries: int
    total_size: int
    current_ledger_entries: int
    current_ledger_size: int
    last_confirmed_entry: Position
    max_read_position: Position
    ledgers: list[LedgerRow]
    cursors: dict[str, CursorRow]
    open_transactions: list[OpenTransaction]
    aborted_segments: list[AbortedSegment]


def topic_stats_internal(connection: Connection, name: str) -> InternalStats:
    """Return the internal statistics of a topic, from one view."""
    with connection.view() as view:
        topic = topics.get(view, name)
        topic_state, topic_id = topic_states.load(view, topic.topic_id), topic.topic_id
        segments, ledgers = aborted.segments(view, topic_id), log.ledgers(view, topic_id, topic_state)
        aborted.check_all(topic_id, topic_state, sum(segment.transactions for segment in segments))
        return InternalStats(
            topic=topic.full_name, name=topic.name, topic_id=topic_id,
            as_of_at_ms=connection.clock.wall_ms(),
            entries_added_counter=topic_state.entries,
            number_of_entries=sum(ledger.entries for ledger in ledgers),
            total_size=topic_state.bytes - topic_state.bytes_trimmed,
            current_ledger_entries=topic_state.next_entry,
            current_ledger_size=topic_state.bytes - topic_state.ledger_bytes_before,
            last_confirmed_entry=topic_state.last_confirmed_position, max_read_position=topic_state.max_read_position,
            ledgers=[ledger_row(ledger) for ledger in ledgers],
            cursors={
                subscription.name: _cursor(view, subscription.subscription_id)
                for subscription in subscriptions.every(view, topic_id)
            },
            open_transactions=[
                OpenTransaction(TxnID(txn), first)
                for txn, first in uncommitted_entries.open_transactions(view, topic_id)
            ],
            aborted_segments=segments,
        )  # fmt: skip


def ledger_row(ledger: log.LedgerInfo) -> LedgerRow:
    """Return a ledger as a row."""
    return LedgerRow(
        ledger.ledger_id, ledger.entries, ledger.messages, ledger.bytes, ledger.opened_ms, ledger.closed_ms
    )


def _range(first: Position, last: int, messages: bytes) -> str:
    """Return an acknowledged range as text."""
    if messages:
        return f"{first} (part)"
    return f"{first}" if last == first.entry_id else f"{first}..{Position(first.ledger_id, last)}"


def _cursor(view: ReadView, subscription_id: int) -> CursorRow:
    cursor = cursors.load(view, subscription_id)
    pending = cursor.pending_cumulative
    return CursorRow(
        Position(*cursor.mark_delete), Position(*cursor.read),
        [_range(*acknowledged) for acknowledged in acked_ranges.ranges(view, subscription_id)],
        cursor.generation, cursor.released, TxnID(pending[0]) if pending else None,
    )  # fmt: skip
